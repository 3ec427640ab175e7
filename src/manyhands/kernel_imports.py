"""Import ipykernel for kernels that nobody debugs.

These are the ranks of a cluster, and a submission that is graded.
"""

import sys


def import_ipykernel() -> None:
    """Import what a kernel consists of, without debugpy.

    debugpy takes a fifth of its memory and of its start.

    ipykernel looks for debugpy once. Code in the kernel can still import it.
    """
    before = sys.modules.get("debugpy")
    # None, where it has not been imported: then an import of it fails
    sys.modules["debugpy"] = before  # type: ignore[assignment]  # None is allowed there at run time
    try:
        import ipykernel.debugger
        import ipykernel.ipkernel  # noqa: F401
    finally:
        if before is None:
            del sys.modules["debugpy"]

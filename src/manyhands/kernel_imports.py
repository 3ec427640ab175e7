"""Import ipykernel for kernels that nobody debugs: the ranks of a cluster, and a submission that is graded."""

import sys


def import_ipykernel():
    """Import what a kernel consists of, without debugpy, which takes a fifth of its memory and of its start.

    ipykernel looks for debugpy once. Code in the kernel can still import it.
    """
    before = sys.modules.get("debugpy")
    sys.modules["debugpy"] = before  # None, where it has not been imported: then an import of it fails
    try:
        import ipykernel.debugger
        import ipykernel.ipkernel  # noqa: F401
    finally:
        if before is None:
            del sys.modules["debugpy"]

"""The order of all tests, which of them share a process, and the tests that need a GPU.

Cheap tests come first. Tests stay together where the processes of a run share them.
"""

import importlib.util
import os
from pathlib import Path

import pytest

from manyhands.cli.setup_plan import gpu_here

# before torch: threads that wait actively take three times the processor where others want it too
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# of PyTorch's CUDA build: imported after TensorFlow it ends the process (SIGSEGV)
if importlib.util.find_spec("triton"):
    import triton  # noqa: F401

pytest_plugins = ["in_browser"]
HERE = Path(__file__).resolve().parent
# Folders and files of tests/: first what is cheap, then what is long and in one piece (the hub),
# then many short ones that fill up what is left. What is not named here comes after the unit tests.
# A browser's driver leaves an event loop running in its process: no test that comes later may run
# another.
ORDER = ("unit", "test_drift.py", "", "labs", "notebooks", "hub", "dist", "site", "browser")
# First in their folders: what leaves the solutions' references, which test_labs.py compares with;
# and the longest file of dist, which would end alone.
FIRST = ("test_mutants.py", "test_slurm.py")


def cost(item):
    """The place of a test in the order."""
    part = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
    return ORDER.index(part if part in ORDER else ""), item.path.name not in FIRST


def together(nodeid):
    """The name of the group of tests that run in one process, one after the other.

    The tests of a file form a group. So do all tests of hubs, because their attendees have the same
    user numbers, and the wrong solutions of a unit, because they share a kernel.
    """
    path, _, name = nodeid.partition("::")
    if path.startswith("tests/hub/"):
        return "hub"
    return (
        path + name.partition("[")[2].rstrip("]").split("/")[0]
        if path.endswith("test_mutants.py")
        else path
    )


# of pytest-xdist; its own way to say this, --dist loadgroup, does nothing under pytest 9.2
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return together(nodeid)

    return Together(config, log)


def pytest_collection_modifyitems(config, items):
    """Sort the tests, and leave out those that have a target of their own or lack a GPU.

    The order inside a folder stays. `make test-containers`, `make test-oldest` and
    `make test-wheel` run the tests that are left to them. What needs a GPU is skipped where there
    is none, in CI too.
    """
    items.sort(key=cost)
    for mark in ("containers", "oldest", "wheel"):
        if mark not in config.option.markexpr:
            config.hook.pytest_deselected(
                items=[item for item in items if item.get_closest_marker(mark)]
            )
            items[:] = [item for item in items if not item.get_closest_marker(mark)]
    if any(item.get_closest_marker("gpu") for item in items) and not gpu_here():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(
                    pytest.mark.skip(
                        reason="there is no GPU here: run `make test-gpu` where there is one"
                    )
                )

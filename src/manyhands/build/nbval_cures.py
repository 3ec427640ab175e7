"""A pytest plugin that closes nbval's false passes. Used by `validate`, one notebook per pytest run.

nbval alone passes: a cell whose execution_count is None (it is not compared), a cell that timed out inside a call that
swallows the interrupt, the cells after it (expected failures), and a cell that is to raise and does not. And it knows
nothing of the tag `measured`. Its kernels listen on TCP ports that they choose by looking for free ones: two kernels that start at
the same moment may choose the same, and one of them never answers. Sockets in a folder of their own cannot meet.
"""

import os
import tempfile
from functools import partial

import nbval.kernel
import pytest

from manyhands.build.canonical import RECORD

OUTPUT_TIMEOUT_S = 20  # how long an output may be on its way after its cell has ended; 5 is too short on a busy machine


def pytest_configure(config):
    sockets = os.path.join(os.environ.get("TMPDIR", tempfile.gettempdir()), f"k{os.getpid()}")
    nbval.kernel.KernelManager = partial(nbval.kernel.KernelManager, transport="ipc", ip=sockets)


def pytest_itemcollected(item):
    if hasattr(item, "cell"):
        item.output_timeout = OUTPUT_TIMEOUT_S
        if "measured" in _tags(item):
            item.options["check"] = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    result = yield
    if hasattr(item, "cell") and RECORD not in item.parent.skip_compare:
        item.parent.skip_compare += (RECORD,)  # never stored: the grader compares records, with their tolerances
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if not hasattr(item, "cell") or call.when != "call":
        return report
    why = _false_pass(item) if report.passed or report.skipped else None
    if why:
        report.outcome = "failed"
        report.longrepr = f"Cell {item.cell_num}: {why}\n\nInput:\n{item.cell.source}"
        if hasattr(report, "wasxfail"):
            del report.wasxfail
    return report


def _false_pass(item):
    """Why a cell that nbval lets pass did not pass, or None."""
    if item.parent.timed_out:
        return "this cell or one before it timed out"
    if item.cell.execution_count is None and item.cell.source.strip():
        return "it has no execution count: it was never run, so there is nothing to compare with"
    if item.options["skip"]:
        return "it is marked to be skipped"
    if "raises-exception" in _tags(item) and not any(out.output_type == "error" for out in item.test_outputs or ()):
        return "it is tagged raises-exception, but it raised nothing"
    return None


def _tags(item):
    return item.cell.metadata.get("tags", [])

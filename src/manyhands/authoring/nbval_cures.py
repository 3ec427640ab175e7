"""A pytest plugin that closes nbval's false passes.

Used by `validate`, one notebook per pytest run.

nbval alone passes: a cell whose execution_count is None (it is not compared), a cell that timed out
inside a call that swallows the interrupt, the cells after it (expected failures), and a cell that
is to raise and does not. And it knows nothing of the tag `measured`. It compares pictures as texts,
though processors differ in the last place of a position. Its kernels listen on TCP ports that they
choose by looking for free ones: two kernels that start at the same moment may choose the same, and
one of them never answers. Sockets in a folder of their own cannot meet.
"""

from __future__ import annotations

import os
import re
import tempfile
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Any

import nbval.kernel
import pytest
from nbval.plugin import IPyNbCell

from manyhands.authoring.canonical import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from nbformat import NotebookNode

# how long an output may be on its way after its cell has ended; 5 is too short on a busy machine
OUTPUT_TIMEOUT_S = 20
SVG, SVG_POINTS = "image/svg+xml", 0.01  # how far apart positions in a picture may be
_NUMBER = re.compile(r"(?<![\w#.-])-?\d+(?:\.\d+)?(?![\w.])")
# matplotlib makes those of markers and clips from their positions
_ID = re.compile(r'(?<=url\(#)\w+|(?<=href="#)\w+|(?<= id=")\w+')


def pytest_configure(config: pytest.Config) -> None:
    """Let kernels use sockets in the temporary folder, and cure nbval's comparison."""
    sockets = os.path.join(os.environ.get("TMPDIR", tempfile.gettempdir()), f"k{os.getpid()}")
    nbval.kernel.KernelManager = partial(nbval.kernel.KernelManager, transport="ipc", ip=sockets)
    IPyNbCell.compare_outputs = partialmethod(_compare_outputs, IPyNbCell.compare_outputs)


def pytest_itemcollected(item: Any) -> None:
    """Give each cell its time for outputs, and compare none where a cell measures."""
    if hasattr(item, "cell"):
        item.output_timeout = OUTPUT_TIMEOUT_S
        if "measured" in _tags(item):
            item.options["check"] = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: Any) -> Generator[None, Any, Any]:
    """Leave the records of checks out of what nbval compares."""
    result = yield
    if hasattr(item, "cell") and RECORD not in item.parent.skip_compare:
        # never stored: the grader compares records, with their tolerances
        item.parent.skip_compare += (RECORD,)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Let a false pass fail, and add to a failure what the cell showed before."""
    report = yield
    if not hasattr(item, "cell") or call.when != "call":
        return report
    why = _false_pass(item) if report.passed or report.skipped else None
    if why:
        report.outcome = "failed"
        report.longrepr = f"Cell {item.cell_num}: {why}\n\nInput:\n{item.cell.source}"
        if hasattr(report, "wasxfail"):
            del report.wasxfail
    shown = _shown(item) if report.failed and not why else ""
    if shown:
        report.longrepr = f"{report.longrepr}\n\nBefore that the cell showed:\n{shown}"
    return report


def _shown(item: IPyNbCell) -> str:
    """What a cell that raised had shown before, as text.

    A cluster's report of a fault stands there; the exception has only its first line.
    """
    outputs = item.test_outputs or []
    if not any(out.output_type == "error" for out in outputs):
        return ""
    return "".join(
        out.text if out.output_type == "stream" else out.data.get("text/plain", "") + "\n"
        for out in outputs
        if out.output_type != "error"
    )


def _compare_outputs(
    item: IPyNbCell,
    compare: Callable[..., bool],
    test: list[NotebookNode],
    ref: list[NotebookNode],
    skip_compare: Sequence[str] | None = None,
) -> bool:
    """Compare pictures with their stored ones before nbval does.

    Where two are the same picture, the new one gets the stored one's very text.
    """
    # nbval itself reports an output that is missing
    for made, stored in zip(test, ref, strict=False):
        made, stored = made.get("data", {}), stored.get("data", {})
        if SVG in made and SVG in stored and same_picture(made[SVG], stored[SVG]):
            made[SVG] = stored[SVG]
    return compare(item, test, ref, skip_compare)


def same_picture(first: str, second: str) -> bool:
    """Whether two SVG texts differ in nothing but small numbers and names of ids.

    The numbers are inside their tags, and each differs by less than SVG_POINTS. Letters must be the
    same.
    """
    parts, others = (
        re.split("(<[^>]*>)", _ids_numbered(first)),
        re.split("(<[^>]*>)", _ids_numbered(second)),
    )
    return len(parts) == len(others) and all(
        a == b or (a[:1] == b[:1] == "<" and _same_tag(a, b))
        for a, b in zip(parts, others, strict=True)
    )


def _ids_numbered(text: str) -> str:
    """The text with the ids that its tags give and use named in the order in which they come."""
    names: dict[str, int] = {}
    return re.sub(
        "<[^>]*>",
        lambda tag: _ID.sub(lambda name: f"id_{names.setdefault(name[0], len(names))}_", tag[0]),
        text,
    )


def _same_tag(first: str, second: str) -> bool:
    return _NUMBER.sub("0", first) == _NUMBER.sub("0", second) and all(
        abs(float(a) - float(b)) < SVG_POINTS
        for a, b in zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=True)
    )


def _false_pass(item: IPyNbCell) -> str | None:
    """Why a cell that nbval lets pass did not pass, or None."""
    if item.parent.timed_out:
        return "this cell or one before it timed out"
    if item.cell.execution_count is None and item.cell.source.strip():
        return (
            "it has no execution count, because it was never run, so its output cannot be compared"
        )
    if item.options["skip"]:
        return "it is marked to be skipped"
    if "raises-exception" in _tags(item) and not any(
        out.output_type == "error" for out in item.test_outputs or ()
    ):
        return "it is tagged raises-exception, but raised no exception"
    return None


def _tags(item: IPyNbCell) -> list[str]:
    return item.cell.metadata.get("tags", [])

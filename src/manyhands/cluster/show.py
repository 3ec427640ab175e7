"""What a cell on the ranks puts on the page.

That is outputs in rank order, a passing line of progress, and the report of a fault.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from manyhands.cluster.faults.kinds import Fault, Outcome

UPDATE_S, LOOK_S = 1.0, 0.25  # of a line that is shown, and of one that may be shown next


def in_notebook() -> bool:
    """True in a kernel of Jupyter; false in a terminal, a script or a test."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def in_this_kernel(name: str) -> bool:
    """Whether the learner has given something this name in this kernel.

    It is the kernel that has sent the cell to the ranks.
    """
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and name in shell.user_ns and name not in shell.user_ns_hidden


def quiet() -> bool:
    """Whether MANYHANDS_QUIET=1 forbids lines of progress."""
    return os.environ.get("MANYHANDS_QUIET") == "1"


class Progress:
    """A line that says what is going on, and that is taken away at the end.

    Silent with MANYHANDS_QUIET=1.

    `text` is followed by the seconds since the start, or is a function of them whose text is the
    whole line, "" for no line. The function is called in a thread, from `after_s` on, and a line
    that is shown changes once per second.
    """

    def __init__(self, text: str | Callable[[float], str], after_s: float = 0.5) -> None:
        self._line = text if callable(text) else lambda seconds: f"{text} {seconds:.0f} s"
        self._after_s = after_s
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if not quiet() and (in_notebook() or sys.stderr.isatty()):
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def _tick(self) -> None:
        start, handle, shown, pause_s = time.monotonic(), None, "", self._after_s
        while not self._done.wait(pause_s):
            line = self._line(time.monotonic() - start)
            if line != shown:
                handle, shown = _draw(line, handle), line
            pause_s = UPDATE_S if shown else LOOK_S
        if shown:
            _draw("", handle)

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(2)


def _draw(line: str, handle: Any) -> Any:
    """Show a line, in the place of the one before if there is a `handle`; returns the handle.

    "" leaves nothing.
    """
    if not in_notebook():
        # "\r" goes back to the last row of a longer one
        line = line[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r\x1b[K" + line)
        sys.stderr.flush()
        return True
    from IPython.display import display

    # the page's own colour, so that a dark page needs nothing
    html = f'<span style="opacity: .75">{escape(line)}</span>' if line else ""
    data = {"text/plain": line, "text/html": html}
    if handle is None:
        return display(data, raw=True, display_id=True)
    handle.update(data, raw=True)
    return handle


def show_outputs(outcome: Outcome) -> None:
    """What the ranks printed, their last values and their figures: rank after rank."""
    for rank in sorted(outcome.pending):
        result = outcome.pending[rank]
        if rank in outcome.results:
            result.wait_for_output(2)
        data = result.metadata
        for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
            text = data.get(name) or ""
            if text:
                stream.write(_prefixed(rank, text))
        for output in data.get("outputs") or []:
            _show_rich(rank, output)
        reply = outcome.results.get(rank)
        out = reply.get("out") if reply is not None else None
        if out is not None:
            sys.stdout.write(_prefixed(rank, f"Out: {out}" if "\n" not in out else f"Out:\n{out}"))
        sys.stdout.flush()


def _prefixed(rank: int, text: str) -> str:
    # a terminal's line end; of a progress bar, the last state
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.rstrip("\r\n").split("\n"))
    return "".join(f"[rank {rank}] {line}\n" for line in lines)


def _show_rich(rank: int, output: dict[str, Any]) -> None:
    from IPython.display import display

    content = output.get("content", output)
    if "data" in content:
        sys.stdout.write(f"[rank {rank}]\n")
        sys.stdout.flush()
        display(content["data"], raw=True, metadata=content.get("metadata", {}))


class FaultDisplay:
    """Shows the report of each fault, or hands the fault to a caller that holds reports back."""

    def __init__(self) -> None:
        self._held: list[Fault] | None = None

    @property
    def holds(self) -> bool:
        """Whether reports are held back now."""
        return self._held is not None

    @contextmanager
    def hold(self, reports: list[Fault]) -> Iterator[None]:
        """In this block, a fault is appended to `reports` instead of being shown."""
        before, self._held = self._held, reports
        try:
            yield
        finally:
            self._held = before

    def show(self, fault: Fault) -> None:
        """Show the report of `fault`, unless it is held back."""
        if self._held is None:
            show_fault(fault)
        else:
            self._held.append(fault)


def show_fault(fault: Fault) -> None:
    """The report as text, then the wait-for graph as a picture."""
    print(fault.text, flush=True)
    if fault.svg and in_notebook():
        from IPython.display import display

        display({"image/svg+xml": fault.svg, "text/plain": fault.graph_text}, raw=True)

"""What a cell on the ranks puts on the page: outputs in rank order, a passing line of progress,
the report of a fault."""

import os
import sys
import threading
import time


def in_notebook():
    """True in a kernel of Jupyter; false in a terminal, a script or a test."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def in_this_kernel(name):
    """Whether the learner has given something this name here, in the kernel that has sent the cell to the ranks."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and name in shell.user_ns and name not in shell.user_ns_hidden


def quiet():
    return os.environ.get("MANYHANDS_QUIET") == "1"


class Progress:
    """A line that says what is going on and for how long, and that is taken away at the end.
    Silent with MANYHANDS_QUIET=1."""

    def __init__(self, text, after_s=0.5):
        self._text, self._after_s = text, after_s
        self._done = threading.Event()
        self._thread = None

    def __enter__(self):
        if not quiet() and (in_notebook() or sys.stderr.isatty()):
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def _tick(self):
        start, handle = time.monotonic(), None
        while not self._done.wait(self._after_s if handle is None else 0.5):
            line = f"{self._text} {time.monotonic() - start:.0f} s"
            handle = self._draw(line, handle)
        if handle is not None:
            self._draw("", handle)

    def _draw(self, line, handle):
        if not in_notebook():
            sys.stderr.write("\r\x1b[K" + line)
            sys.stderr.flush()
            return True
        from IPython.display import HTML, display

        html = HTML(f'<span style="color:#777">{line}</span>' if line else "<span></span>")
        if handle is None:
            return display(html, display_id=True)
        handle.update(html)
        return handle

    def __exit__(self, *exc):
        self._done.set()
        if self._thread is not None:
            self._thread.join(2)


def show_outputs(outcome):
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
        out = (outcome.results.get(rank) or {}).get("out")
        if out is not None:
            sys.stdout.write(_prefixed(rank, f"Out: {out}" if "\n" not in out else f"Out:\n{out}"))
        sys.stdout.flush()


def _prefixed(rank, text):
    # a terminal's line end; of a progress bar, the last state
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.rstrip("\r\n").split("\n"))
    return "".join(f"[rank {rank}] {line}\n" for line in lines)


def _show_rich(rank, output):
    from IPython.display import display

    content = output.get("content", output)
    if "data" in content:
        sys.stdout.write(f"[rank {rank}]\n")
        sys.stdout.flush()
        display(content["data"], raw=True, metadata=content.get("metadata", {}))


def show_fault(fault):
    """The report as text, then the wait-for graph as a picture."""
    print(fault.text, flush=True)
    if fault.svg and in_notebook():
        from IPython.display import display

        edges = ", ".join(f"{a} -> {b}" for a, b in fault.edges)
        display({"image/svg+xml": fault.svg, "text/plain": f"wait-for graph: {edges}"}, raw=True)

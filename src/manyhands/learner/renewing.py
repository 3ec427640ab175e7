"""An extension of the Jupyter server that writes the start page anew.

It does so when the learner's progress has changed, what the class has released, what was handed in
or given back, or how far the build of Horovod is.

A check in a notebook, or a cell that has run, tells only `work/.manyhands/progress.json`
(`manyhands.checks.progress`), and what was handed in or given back shows in folders that change. In
the browser the page is shown anew by `labextensions/manyhands-lab`.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from manyhands.checks import progress
from manyhands.learner import for_attendees, start_page
from manyhands.machine import horovod_build

EVERY_S = 0.5


class Renewal:
    """Looks at the progress of the clone at `root`.

    `look` writes the page if it has changed since the last look.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.seen = self._changed()

    def _changed(self) -> list[int | str | None]:
        paths = [progress.path_in(self.root / "work"), *for_attendees.watched(self.root)]
        return [*(_written(path) for path in paths), horovod_build(self.root)]

    def look(self) -> bool:
        """True if the page was written; one that cannot be written is left as it is."""
        before, self.seen = self.seen, self._changed()
        if self.seen == before or not any((*self.seen, *before)):
            return False
        with suppress(OSError):
            start_page.write(self.root)
            return True
        return False


def _written(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "manyhands.learner.renewing"}]


def _load_jupyter_server_extension(server: Any) -> None:
    renewal = Renewal(server.root_dir)

    def look() -> None:
        try:
            renewal.look()
        finally:  # an error is logged, and the next change is seen all the same
            server.io_loop.call_later(EVERY_S, look)

    server.io_loop.add_callback(look)

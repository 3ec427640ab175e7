"""The learner's folder in the check of checkpoints.

The learner's `save` writes into it, and `latest` reads from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.elastic_training import diagnosis
from manyhands.checks.elastic_training.disk_faults import files, read_in_process, save_in_process
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

    from manyhands.checks.elastic_training.disk_faults import Read, Saved
    from manyhands.checks.report import Problem


class LearnersDisk:
    """The learner's functions on one folder, and the states that have not been saved yet.

    The oldest step comes first.
    """

    def __init__(
        self,
        save: Callable[..., Any],
        latest: Callable[..., Any],
        folder: Path,
        draw: np.random.Generator,
    ) -> None:
        self.save, self.latest, self.folder, self.draw = save, latest, folder, draw
        folder.mkdir()
        self.states: dict[int, dict[str, Any]] = {}
        self.newest = -1
        self.written: dict[int, list[Path]] = {}  # {step: the files that its save has made}

    def next(self, again: bool = False, **how: Any) -> Saved:
        """Save the next state (`again`: the one that was not saved), and return how it ended.

        Without `how`, it must work.
        """
        step, before = min(step for step in self.states if step > self.newest), files(self.folder)
        saved = save_in_process(self.save, self.states[step], self.folder, step, **how)
        if not how and (saved.error or saved.killed_by):
            why = saved.error or saved.killed_by
            raise Stopped(diagnosis.say("leftovers", error=why)["mistake"] if again else why)
        if not how or how == {"watch": "record"}:
            self.newest = step
            self.written[step] = [
                path for path, what in files(self.folder).items() if before.get(path) != what
            ]
        return saved

    def checkpoints(self) -> dict[Path, bytes]:
        """Return {path: bytes} of what the whole saves have left in the folder."""
        return {
            path: path.read_bytes()
            for paths in self.written.values()
            for path in paths
            if path.is_file()
        }

    def read(self, step: int | None = None) -> tuple[Problem | None, Read]:
        """Return (problem, what `latest` returned).

        The checkpoint of `step`, by default the last that was saved, is the newest whole one.
        """
        newest = self.newest if step is None else step
        read = read_in_process(self.latest, self.folder)
        if "is not written yet" in read.error:
            raise Stopped(read.error)
        state = self.states.get(newest)
        total = float(state["weights"].sum()) + state["seen"] if state else 0.0
        return diagnosis.read_problem(read, newest, total), read

    def draw_part(self, size: int) -> int:
        """Draw the size of a hidden part of a file of `size` bytes."""
        return int(self.draw.uniform(0.15, 0.85) * size)

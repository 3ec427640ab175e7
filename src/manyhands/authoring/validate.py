"""nbval for many notebooks, side by side.

Each has a process, a folder and an environment of its own. A server (`validate_server`) imports
pytest, nbval and Jupyter once and forks a process for each notebook: a warm start. It ends with the
last notebook, or with the process that asked for it, and leaves nothing behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.machine import CELL_S, processors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NOTEBOOK_TIMEOUT_S = 600
# one more than cores: a notebook that shows a hang mostly waits; each needs about 1 GB
JOBS = min(8, processors() + 1)


@dataclass(frozen=True)
class Verdict:
    """What nbval says of one notebook.

    `strays` are the processes that it left running, ended by now.
    """

    notebook: str
    passed: bool
    text: str
    strays: list[int]
    seconds: float


class Validation:
    """nbval on these notebooks, `jobs` at a time, begun at once.

    A context manager: leaving it stops what still runs.

    `environment` is put on top of what the kernels see; `{name}` in a value stands for the
    notebook's folder and name. Iterate to get a Verdict for each notebook as it ends, whatever
    happens to it; or ask for one with `of`.
    """

    def __init__(
        self,
        notebooks: Iterable[str | Path],
        jobs: int = JOBS,
        cell_timeout_s: float = CELL_S,
        timeout_s: float = NOTEBOOK_TIMEOUT_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        order = {"notebooks": [str(Path(path).resolve()) for path in notebooks], "jobs": jobs}
        order |= {
            "cell_timeout_s": cell_timeout_s,
            "timeout_s": timeout_s,
            "environment": environment or {},
        }
        command = [sys.executable, "-m", "manyhands.authoring.validate_server"]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._server.stdin is not None and self._server.stdout is not None
        self._orders, self._verdicts = self._server.stdin, self._server.stdout
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        self._come: dict[str, Verdict] = {}

    def __iter__(self) -> Iterator[Verdict]:
        for line in self._verdicts:
            verdict = Verdict(**json.loads(line))
            self._come[verdict.notebook] = verdict
            yield verdict
        if self._server.wait():
            raise RuntimeError(f"the server that runs nbval ended with {self._server.returncode}")

    def of(self, notebook: str | Path) -> Verdict:
        """The verdict of one notebook; waits for it while the others go on."""
        notebook = str(Path(notebook).resolve())
        verdicts = iter(self)
        while notebook not in self._come:
            next(verdicts)
        return self._come[notebook]

    def __enter__(self) -> Validation:
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()  # the server takes it as the order to stop
        self._verdicts.close()
        self._server.wait()

"""Run a notebook as a learner would, in a kernel of its own.

The run stops at the first error that is not taught.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from manyhands.authoring import BuildError
from manyhands.isolation.kernel_environment import kernel_environment
from manyhands.machine import CELL_S
from manyhands.shared.processes import adopt_orphans, children, end, release_orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nbformat import NotebookNode


def execute(
    notebook: NotebookNode,
    folder: str | Path,
    name: str,
    cell_timeout_s: float = CELL_S,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    more: Mapping[str, str] | None = None,
) -> NotebookNode:
    """Run the notebook's cells in place, the kernel standing in `folder`.

    A BuildError names unit, cell and traceback. Cells tagged raises-exception may fail, and must.
    Processes that the notebook leaves behind are ended. `progress(number, of)` hears which cell
    begins. The kernel sees the environment variables `more` too.
    """
    adopt_orphans()
    before = children()
    home = Path(tempfile.mkdtemp(prefix="mh-"))
    started: list[int] = []

    def begins(cell: NotebookNode, cell_index: int) -> None:
        started.append(cell_index)
        if progress:
            progress(cell_index + 1, len(notebook.cells))

    client = _client(notebook, folder, home, cell_timeout_s, begins)
    try:
        with open(home / "kernel.log", "w") as kernel_log:
            client.execute(env=kernel_environment(home, seed, **(more or {})), stderr=kernel_log)
    except CellExecutionError:
        raise BuildError(_story(notebook, name, started[-1], "raises an error")) from None
    except CellTimeoutError:
        raise BuildError(
            _story(notebook, name, started[-1], f"runs for more than {cell_timeout_s} s")
        ) from None
    except DeadKernelError:
        last_words = (home / "kernel.log").read_text(encoding="utf-8", errors="replace")[-2000:]
        story = _story(notebook, name, started[-1] if started else 0, "ends its kernel")
        raise BuildError(f"{story}\n{last_words}".rstrip()) from None
    finally:
        end(process for process in children() if process not in before)
        release_orphans()
        shutil.rmtree(home, ignore_errors=True)
    _refuse_missing_errors(notebook, name)
    return notebook


def _client(
    notebook: NotebookNode,
    folder: str | Path,
    home: Path,
    cell_timeout_s: float,
    begins: Callable[[NotebookNode, int], None],
) -> NotebookClient:
    client = NotebookClient(
        notebook,
        timeout=cell_timeout_s,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        log=_quiet(),
        on_cell_start=begins,
    )
    manager = client.create_kernel_manager()
    # no TCP port: two kernels that start at once cannot meet
    manager.transport, manager.ip = "ipc", str(home / "k")
    return client


def _quiet() -> logging.Logger:
    log = logging.getLogger("manyhands.authoring.nbclient")
    log.setLevel(logging.CRITICAL)
    return log


def _story(notebook: NotebookNode, name: str, index: int, what: str) -> str:
    """Where it stopped, the cell's text and, if it raised, its traceback."""
    cell = notebook.cells[index]
    lines = [f"{name}, cell {index + 1} of {len(notebook.cells)}, {what}:"]
    lines += ["    " + line for line in cell.source.split("\n")]
    for output in cell.outputs:
        if output.output_type == "stream":
            lines += ["it printed:", output.text.rstrip()]
        elif output.output_type == "error":
            lines += output.traceback
    return "\n".join(lines)


def _refuse_missing_errors(notebook: NotebookNode, name: str) -> None:
    for number, cell in enumerate(notebook.cells, 1):
        raised = any(output.output_type == "error" for output in cell.get("outputs", ()))
        if "raises-exception" in cell.metadata.get("tags", []) and not raised:
            raise BuildError(
                f"{name}, cell {number} is tagged raises-exception, but raised no exception"
            )

"""What `make lab` leaves for later: Python's bytecode, and Horovod.

A process in the background does both.

That process begins when the learner's first cell has run, so that it takes neither the processors
nor the disk from what the learner is waiting for. Standard library only, and readable by Python
3.9.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from manyhands import machine

if TYPE_CHECKING:
    from pathlib import Path

    from manyhands.cli.setup_plan import Plan
    from manyhands.cli.setup_steps import Steps


HEAD_START_S = 120
WAITING = f"it begins when your first cell has run, or after {HEAD_START_S // 60} minutes"
ASK_FOLDERS = (
    "import sysconfig; print('\\n'.join({sysconfig.get_path('purelib'), "
    "sysconfig.get_path('platlib')}))"
)
# A file that is compiled already is left as it is. What is not Python in spite of its name (a
# template) is passed over.
COMPILE = (
    "import compileall, sys; "
    "[compileall.compile_dir(one, quiet=2, workers=int(sys.argv[1])) for one in sys.argv[2:]]"
)
# What a cluster's first engine imports: while other packages are written, it is read from the disk
# and compiled.
IMPORT_TORCH = "import torch, torch.distributed, torch.nn.parallel, torch.optim, torch._dynamo"


def start(script: str | Path, plan: Plan) -> None:
    """Start `script horovod` in the background, at the lowest priority, unless it runs already.

    A shell that ends immediately starts it, because JupyterLab ends all its own children.
    """
    if not machine.horovod_build(plan.root):
        subprocess.run(
            [
                "/bin/sh",
                "-c",
                '"$@" &',
                "sh",
                sys.executable,
                str(script),
                "horovod",
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: os.nice(19),
            env=plan.environ,
            check=True,
        )


def wait_for_first_cell(root: Path, starter: int, begun: float) -> None:
    """Return when a learner's cell has run here since the time `begun`.

    Also return when the process `starter` (which becomes JupyterLab's parent) has ended, or after
    HEAD_START_S.
    """
    until, progress = time.monotonic() + HEAD_START_S, machine.progress_file(root / "work")
    while (
        starter
        and _runs(starter)
        and not _changed_since(begun, progress)
        and time.monotonic() < until
    ):
        time.sleep(0.2)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _changed_since(when: float, path: Path) -> bool:
    try:
        return path.stat().st_mtime >= when
    except OSError:
        return False


def import_torch(plan: Plan) -> None:
    """Begin to import PyTorch, and do not wait for it.

    Only the disk's cache and the bytecode are wanted.
    """
    subprocess.Popen(
        [str(plan.python), "-c", IMPORT_TORCH],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=plan.environment(),
    )


def compile_packages(plan: Plan, steps: Steps, workers: int = 0) -> None:
    """Write the bytecode of all packages, as pip does; `workers` processes (0: one per processor).

    Who uses the environment may not be allowed to write there, and would compile again in each
    process. A killed one goes on where it was, for each file is written in one rename.
    """
    folders = subprocess.run(
        [str(plan.python), "-c", ASK_FOLDERS], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    steps.call(
        [plan.python, "-c", COMPILE, workers, *folders.split("\n")[:-1]], env=plan.environment()
    )

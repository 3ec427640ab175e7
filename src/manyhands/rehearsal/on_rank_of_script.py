"""The program on each rank of a rehearsal: the learner's script, recorded.

    python on_rank_of_script.py FOLDER SCRIPT [ARGUMENTS]

Each event is written to FOLDER/RANK.trace as it happens, so that a script that hangs leaves its
trace. A script that ended by itself leaves FOLDER/RANK.end, with the error's text if there was one.
Where MANYHANDS_REHEARSAL_STEPS is set, a rank ends after so many steps of optimizers, and
FOLDER/RANK.whole says how many events it had before the last.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.rehearsal.trace_recorder import Recorder


STEPS = "MANYHANDS_REHEARSAL_STEPS"


def main() -> None:
    """Run the script on this rank, recorded, until it ends or has taken its steps."""
    folder, script, *arguments = sys.argv[1:]
    from manyhands.own_environment import note_failed_import

    try:
        from manyhands.cluster.launch import as_main

        as_main.prepare(script, arguments, folder, int(os.environ["RANK"]))
        from manyhands.cluster.on_rank import signalled_stack, tf_config
        from manyhands.rehearsal.trace import dump
        from manyhands.rehearsal.trace_recorder import Recorder
    except ImportError as problem:
        note_failed_import(folder, problem)
        raise
    signalled_stack.write_on_signal(os.path.join(folder, f"stacks-{os.environ['RANK']}"))
    tf_config.keep(os.path.join(folder, f"tf-config-{os.environ['RANK']}"))
    base = Path(folder, os.environ["RANK"])
    with open(f"{base}.trace", "w", buffering=1) as file:
        recorder = Recorder(heard=lambda event: file.write(dump([event])))
        recorder.start()
        if STEPS in os.environ:
            _end_after(int(os.environ[STEPS]), recorder, base)
        ended = ""
        try:
            namespace = as_main.run(script)  # noqa: F841
        except SystemExit as problem:
            ended = "" if problem.code in (None, 0) else f"SystemExit: {problem.code}"
        except BaseException as problem:  # noqa: BLE001 - whatever ends the script is noted
            note_failed_import(folder, problem)
            ended = _text(problem, script)
        if not ended:
            recorder.stop()
            _end_as_python_does()
        Path(f"{base}.end").write_text(ended)
    if ended:
        print(ended, file=sys.stderr, flush=True)
    sys.stdout.flush()
    # What is left of torch.distributed is not waited for: other ranks may wait for this one, and a
    # process group that is freed here joins its threads, which may wait for Python's lock.
    os._exit(bool(ended))


def _end_as_python_does() -> None:
    """Wait for the script's threads, and do what it has left to be done at its end."""
    threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing ends its processes
    atexit._run_exitfuncs()


def _end_after(steps: int, recorder: Recorder, base: Path) -> None:
    """Let this process end with its optimizers' last of so many steps."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    done: list[int] = []

    def after(*_: object) -> None:
        done.append(len(recorder.events))
        if len(done) == steps:
            Path(f"{base}.whole").write_text(str(done[-2] if steps > 1 else 0))
            Path(f"{base}.end").write_text("")
            _wait_for_others(Path(base).parent)
            sys.stdout.flush()
            os._exit(0)  # at the same line on all ranks: no rank is left to clean up with

    register_optimizer_step_post_hook(after)


def _wait_for_others(folder: Path) -> None:
    """Who ends early closes connections that others still need."""
    from manyhands.rehearsal.rehearsal_limits import OTHERS_S

    until = time.monotonic() + OTHERS_S
    while time.monotonic() < until and len(list(folder.glob("*.end"))) < int(
        os.environ["WORLD_SIZE"]
    ):
        time.sleep(0.05)


def _text(problem: BaseException, script: str) -> str:
    """The traceback from the script on."""
    frames = problem.__traceback__
    while frames is not None and os.path.realpath(
        frames.tb_frame.f_code.co_filename
    ) != os.path.realpath(script):
        frames = frames.tb_next
    return "".join(
        traceback.format_exception(problem.with_traceback(frames or problem.__traceback__))
    )


if __name__ == "__main__":
    main()

"""The program on each rank: a team's script, with observers in place.

`python rank_program.py FOLDER SCRIPT [ARGUMENTS]`.

What was seen goes into FOLDER: `where-R.json` a few times a second, `seen-R.pt`, `cost-R.json` and,
where the script fails, `error-R.json`. A file `stop` in FOLDER ends the process.
"""

import faulthandler
import json
import os
import sys
import time
import traceback


def rank_and_size() -> tuple[int, int]:
    """This process's number and how many there are, as its launcher says."""
    for rank, size in (
        ("HOROVOD_RANK", "HOROVOD_SIZE"),
        ("RANK", "WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
    ):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ.get(size, 1))
    return 0, 1


def note_error(folder: str, rank: int, error: BaseException, script: str) -> None:
    """Write the exception to `error-R.json`, with a short traceback.

    The frames of this program and of runpy above the script's own are left out, and most of those
    of libraries.
    """
    from manyhands.clinic.reporter import write_json
    from manyhands.clinic.tracebacks import shorten_traceback
    from manyhands.cluster.on_rank.agent import describe
    from manyhands.own_environment import note_failed_import

    note_failed_import(folder, error)
    frames = error.__traceback__
    while frames is not None and os.path.abspath(frames.tb_frame.f_code.co_filename) != script:
        frames = frames.tb_next
    error = error.with_traceback(frames or error.__traceback__)
    write_json(
        os.path.join(folder, f"error-{rank}.json"),
        {**describe(error), "traceback": shorten_traceback(error)},
    )
    traceback.print_exception(error)


def main() -> None:
    """Run the script on this rank until it, its observed steps, or the clinic ends."""
    folder, script, *arguments = sys.argv[1:]
    faulthandler.enable()
    rank, size = rank_and_size()
    try:
        from manyhands.cluster.launch import as_main

        as_main.prepare(script, arguments, folder, rank)
        from manyhands.clinic.observe import Observer
        from manyhands.clinic.reporter import Reporter

        reporter = Reporter(folder, rank)
        observer = Observer(
            folder, rank, size, reporter, json.loads(os.environ["MANYHANDS_CLINIC"])
        )
    except ImportError as error:
        from manyhands.own_environment import note_failed_import

        note_failed_import(folder, error)
        raise
    try:
        namespace = as_main.run(script)  # noqa: F841
    except SystemExit as ended:
        # later, it may well miss what the loader was cut short of
        if ended.code and not observer.going_on:
            note_error(folder, rank, ended, script)
            observer.end(1 if not isinstance(ended.code, int) else ended.code)
    except BaseException as error:  # noqa: BLE001 - whatever ends the script is noted
        if reporter.must_stop():
            # the connection is lost because the others were stopped: this process is too, at once
            time.sleep(60)
        if not observer.going_on:
            note_error(folder, rank, error, script)
            observer.end(1)
    observer.end()


if __name__ == "__main__":
    main()

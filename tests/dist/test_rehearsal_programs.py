"""Programs for torchrun, recorded and judged.

Of the bad ones it is checked what is said of which line, and of the good ones that nothing is.
"""

import multiprocessing.forkserver
import re
import tempfile
import time
from pathlib import Path

import pytest
import rehearsal_ranks

from manyhands.rehearsal import judge, load

PROGRAMS = sorted(Path(__file__).with_name("rehearsal_programs").glob("*.py"))
LIMIT_S, QUIET_S = 240, 20


@pytest.fixture(scope="module")
def rank_process():
    """Makes a process of a rank, forked from one that has imported what the ranks need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(rehearsal_ranks.IMPORTED_BEFORE)
    yield context.Process
    multiprocessing.forkserver._forkserver._stop()  # else it ends with the last test of all


def rehearse(program, ranks, rank_process, hangs):
    """({rank: its trace}, whether all came to their end, what their stacks were if not).

    Of a program that hangs, all have said what they have to say when nothing new came for QUIET_S.
    """
    with tempfile.TemporaryDirectory(prefix="r") as folder:
        folder, began = Path(folder), time.monotonic()
        processes = [
            rank_process(
                target=rehearsal_ranks.play, args=(program, folder, rank, ranks, LIMIT_S - 10)
            )
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        while (
            any(process.is_alive() for process in processes) and time.monotonic() - began < LIMIT_S
        ):
            newest = [
                path.stat().st_mtime for path in folder.glob("*.trace") if path.stat().st_size
            ]
            if hangs and len(newest) == ranks and time.time() - max(newest) > QUIET_S:
                break
            time.sleep(0.02)
        for process in processes:
            process.kill()
            process.join()
        ended = all((folder / f"{rank}.end").exists() for rank in range(ranks))
        stacks = "\n".join(path.read_text() for path in sorted(folder.glob("*.stacks")))
        return (
            {rank: load((folder / f"{rank}.trace").read_text()) for rank in range(ranks)},
            ended,
            stacks,
        )


def expected(program):
    """(ranks, {severity: lines}) of what the program's first line says."""
    wanted, ranks = re.search(
        r"expect: (.*), ranks (\d+)\"\"\"", program.read_text().splitlines()[0]
    ).groups()
    parts = [
        part.split()
        for part in wanted.replace("may hang", "may-hang").split(";")
        if part.split()[-1] != "nothing"
    ]
    return int(ranks), {
        severity.replace("-", " "): {int(line) for line in lines} for severity, *lines in parts
    }


@pytest.mark.parametrize("program", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_what_is_said_of_a_program(program, rank_process):
    ranks, wanted = expected(program)
    found = {}
    traces, ended, stacks = rehearse(program, ranks, rank_process, "hangs" in wanted)
    assert ended or "hangs" in wanted, f"{traces}\n{stacks}"
    for finding in judge(traces, program.read_text()):
        assert Path(finding.file) == program, finding
        found.setdefault(finding.severity, set()).add(finding.line)
    assert found == wanted

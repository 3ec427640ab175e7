"""Each benchmark starts as its documentation says, and prints a figure.

How large that is, no test says.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = ("board", "attendees")
# the words behind `python -m`, and a part of a row that is printed
COMMANDS = {
    "start": (["benchmarks", "start"], "memory of all their processes"),
    "heal": (["benchmarks", "heal"], "the same, in seconds"),
    "cell": (["benchmarks", "cell"], "an empty %%px cell"),
    "validation": (["benchmarks", "validation"], "nbval of all 2 notebooks"),
    "communication": (["benchmarks", "communication"], "bcast, gloo, 1 KB: torch.distributed.nn"),
    "grading": (["benchmarks", "grading"], "memory of all their processes"),
    "hostile": (["benchmarks", "hostile"], "Half a letter in a text cell"),
    "board": (["benchmarks", "board"], "share of one core"),
    "attendees": (["benchmarks", "attendees", "--people", "1"], "| log out |"),
    "memory": (["benchmarks", "memory", "03"], "| 03 | lab |"),
    "clinic": (["benchmarks", "clinic", "by_hand"], "| by_hand | (right) | yes |"),
    "public": (["benchmarks", "clinic", "nano_gpt"], "| nano_gpt | (right) | yes |"),
    "predicted": (["benchmarks", "predicted", "06"], "| 06_train.py | 6 |"),
    "rehearsal": (["benchmarks", "rehearsal"], "rehearsal ended"),
    "ladders": (["benchmarks.ladders", "big_batch"], "big_batch "),
    "repeat": (
        ["benchmarks.repeat", "big_batch/adam", "--judgings", "1", "--runs", "1"],
        "| `big_batch/adam` | 1 |",
    ),
    "one_network": (["benchmarks.one_network"], "| one process | 1 |"),
    "published": (["benchmarks.published"], "Horovod, ResNet-101"),
    "weights": (["benchmarks.weights"], "| largest difference of a weight |"),
    "gpt_ddp": (
        [
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            "benchmarks/gpt_ddp.py",
            "--steps",
            "2",
        ],
        "",
    ),
}
HELPERS = {
    "__init__",
    "__main__",
    "pairs",
    "turns",
    "chainermn_venv",
    "communication_chainermn",
    "communication_hand",
    "communication_rank",
}


def test_each_benchmark_is_here():
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == COMMANDS.keys() | HELPERS


@pytest.mark.parametrize("name", COMMANDS)
def test_it_starts_and_prints_a_figure(name, tmp_path):
    if name in AS_ROOT and os.geteuid() != 0:
        pytest.skip("it opens a room for each attendee, so it wants root")
    words, row = COMMANDS[name]
    environment = {**os.environ, "MANYHANDS_SMOKE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    # of a target, which a figure of a smoke test may
    missed = done.returncode == 1 and "MISSED" in done.stdout
    assert done.returncode == 0 or missed, done.stdout[-1500:] + done.stderr[-3000:]
    assert row in done.stdout and "Traceback" not in done.stderr

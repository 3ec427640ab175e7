"""The judge without sandboxes: the clock is the same, and what the ranks may still do is little."""

import os
import subprocess
import sys

import pytest

from manyhands.checks.hackathon import cases
from manyhands.hackathon.challenges.challenge import SLOW_LINKS
from manyhands.hackathon.judge.open_judge import OpenJudge, why_not

ONE_TENSOR = """
import torch, torch.distributed as dist

def train(model, batches, comm):
    for step, batch in zip(range(1, 7), batches):
        model(batch)
        if step % 2 == 0:
            for n in (1000, 50):
                dist.all_reduce(torch.zeros(n), group=comm)
    dist.all_gather([torch.zeros(30)] * 4, torch.zeros(30), group=comm)
"""
DOES = """
import ctypes, os, torch

def train(model, batches, comm):
    {body}
"""
REFUSED = {  # what a rank might tell another one by
    "a file": "open({folder!r} + '/file', 'w')",
    "a link": "os.symlink('44', {folder!r} + '/link')",
    "a folder": "os.mkdir({folder!r} + '/folder')",
    "a date": "os.utime({folder!r})",
    "torch": "torch.save({{}}, {folder!r} + '/file')",
    "a process": "os.fork()",
    "its name": "ctypes.CDLL(None).prctl(15, b'44', 0, 0, 0) and os.abort()",
}


@pytest.fixture(scope="module")
def judge():
    with OpenJudge() as opened:
        yield opened


def test_it_is_there():
    assert why_not() is None


def test_the_clock_is_what_is_calculated_by_hand(judge):
    run, _ = judge.run(SLOW_LINKS, ONE_TENSOR, target=0.0, rate_mbit=9.0, delay_ms=4.5)
    message_s = cases.on(9.0, 4.5)
    sums_s = cases.all_reduce_s(4000, 4, message_s) + cases.all_reduce_s(200, 4, message_s)
    assert run.problem == ""
    assert run.clock_s == pytest.approx(6 * 0.01 + 3 * sums_s + 3 * message_s(120), rel=1e-9)
    assert cases.baseline_s(10, 5) == pytest.approx(35.54304)


def test_a_seed_gives_the_same_run_and_none_gives_new_data(judge):
    text = "def train(model, batches, comm):\n    print(model(next(iter(batches))).item())\n"
    printed = [
        judge.run(SLOW_LINKS, text, seed, target=0.0)[1][0] for seed in (b"one", b"one", None, None)
    ]
    assert printed[0] == printed[1] and len({line for lines in printed for line in lines}) == 3


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_a_rank_leaves_nothing_behind(judge, tmp_path, body):
    run, _ = judge.run(SLOW_LINKS, DOES.format(body=body.format(folder=str(tmp_path))), target=0.0)
    assert run.problem and os.listdir(tmp_path) == []


def test_the_ranks_do_not_get_the_seed_of_a_check(judge):
    text = "import os\ndef train(model, batches, comm):\n    print(sorted(os.environ))\n"
    _, printed = judge.run(SLOW_LINKS, text, target=0.0)
    assert "MANYHANDS_SEED" not in printed[0][0] and "OMP_NUM_THREADS" in printed[0][0]


def test_try_without_rooms_gives_the_same_time_and_says_so(tmp_path):
    def hack(*words):
        return subprocess.run(
            [sys.executable, "-m", "manyhands", "hack", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": str(tmp_path)},
        )

    assert hack("init", "slow_links", "ours").returncode == 0
    (tmp_path / "ours" / "entry.py").write_text(ONE_TENSOR)
    done = hack("try", "ours", "--runs", "1")
    assert "The target was not reached" in done.stdout and "Tried without rooms" in done.stderr
    key = subprocess.run(
        [sys.executable, "-m", "manyhands", "certificate", "--new-key", "key"], cwd=tmp_path
    )
    assert (
        key.returncode == 0
        and "bubblewrap is missing" in hack("judge", "ours", "--key", "key").stderr
    )

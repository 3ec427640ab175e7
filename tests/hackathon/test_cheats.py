"""Cheats, each a small entry: the judge names what is wrong, or nothing is gained."""

import secrets
from dataclasses import replace

import pytest

from conftest import HERE, QUICK, verdict
from manyhands.hackathon.challenges.challenge import BIG_BATCH, DOES_NOT_FIT
from manyhands.hackathon.judge import honesty

ON_DEVICES = replace(DOES_NOT_FIT, memory_mib=256, processor_s=2, quiet_s=600)
CHEATS = {path.stem: path.read_text() for path in sorted((HERE / "cheats").glob("*.py"))}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_gains_nothing(run, name):
    challenge = (
        replace(QUICK, quiet_s=5)
        if name == "sleeps"
        else ON_DEVICES
        if "challenge: does_not_fit" in CHEATS[name]
        else QUICK
    )
    result, printed = run(CHEATS[name], secrets.token_bytes(16), challenge)
    assert verdict(CHEATS[name]) in " ".join([result.problem, *honesty.flags([result])])
    assert result.problem.isprintable()
    assert not [line for line in printed if "gained" in line]


def test_who_goes_on_asking_is_ended_too(run):
    result, _ = run(
        "def train(model, batches, comm):\n    while True:\n        print('on')\n",
        challenge=replace(QUICK, run_s=2, processor_s=600),
    )
    assert "the run has not ended after 2 s" in result.problem


def test_nothing_is_left_for_the_next_run(run):
    for _ in range(2):
        _, printed = run(CHEATS["state"])
        assert printed == []


THREAD = """
import ctypes, time
def train(model, batches, comm):
    libc, number = ctypes.CDLL(None), ctypes.c_ulong()
    work = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: time.sleep(0.2))
    begun = time.monotonic()
    libc.pthread_create(ctypes.byref(number), None, work, None)
    print(libc.pthread_join(number, None), time.monotonic() - begun > 0.2)
"""


def test_a_thread_can_be_waited_for(run):
    """Though its end comes by a call that between sandboxes is closed."""
    assert run(THREAD)[1] == ["0 True"] * 4


def test_who_knew_the_seed_would_have_all(run):
    """The cheat with the public seeds is real.

    It has a score on one of them, and a clock that has not gone.
    """
    result, _ = run(CHEATS["knows_the_public_seeds"], b"public 0")
    assert not result.problem and result.clock_s < 0.001


HONEST = """
import time, torch, torch.distributed as dist
{before}
def train(model, batches, comm):
    for _ in range(2):
        batch = next(batches)
        for _ in range({times}):
            model(batch).backward()
        dist.all_reduce(torch.zeros(1000), group=comm)
    {after}
"""
ROUND_S = 0.005 + (1000 + 64) / 1.25e6  # a quarter of 4000 bytes, and a head, over 10 Mbit/s


def clock(run, before="", times=1, after="pass"):
    result, printed = run(
        HONEST.format(before=before, times=times, after=after), challenge=replace(QUICK, target=0)
    )
    assert not result.problem and not printed
    return result.clock_s


def test_the_clock_is_the_sum_of_what_was_used(run):
    assert clock(run) == pytest.approx(2 * (0.010 + 6 * ROUND_S), rel=1e-9)


@pytest.mark.parametrize(
    "before",
    [
        "time.time = time.perf_counter = time.monotonic = lambda: 0.0",
        "import gc; gc.disable(); time.sleep(1)",
        (
            "from manyhands.hackathon.challenges import challenge; "
            "from manyhands.hackathon.judge import network; "
            "challenge.SLOW_LINKS.__dict__['gradient_s'] = 0; network.HEAD_BYTES = -10**6"
        ),
        (
            "from manyhands.hackathon.judge.network import Network; Network.compute = Network._message_s "
            "= lambda *a: (0, 0)"
        ),
        "from manyhands import ledger",
    ],
    ids=["clocks", "waits", "constants", "network", "ledger"],
)
def test_what_is_changed_on_a_rank_changes_no_clock(run, before):
    assert clock(run, before) == clock(run)


def test_a_second_look_at_a_batch_costs_as_much_as_the_first(run):
    assert clock(run, times=3) == pytest.approx(clock(run) + 4 * 0.010, rel=1e-9)


def test_a_message_without_content_is_not_free(run):
    """Its tag could carry numbers."""
    empty = (
        "[dist.send(torch.empty(0), 1, tag=7) if comm.rank() == 0 else comm.rank() == 1 and "
        "dist.recv(torch.empty(0), 0, tag=7) for _ in range(10)]"
    )
    assert clock(run, after=empty) == pytest.approx(clock(run) + 10 * 64 / 1.25e6 + 0.005, rel=1e-9)


def test_objects_and_futures_are_counted_too(run):
    assert clock(run, after="dist.all_gather_object([None] * 4, 'x' * 5000)") > clock(run) + 3 * (
        0.005 + 5000 / 1.25e6
    )


IN_TURN = """
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters
def train(model, batches, comm):
    for turn in range(8):
        weights = parameters_to_vector(model.parameters()).detach()
        if comm.rank() == turn % 4:
            model(next(batches)).backward()
            weights -= 0.1 * parameters_to_vector([one.grad for one in model.parameters()])
        dist.broadcast(weights, turn % 4)
        vector_to_parameters(weights, model.parameters())
"""


def test_ranks_that_update_in_turn_have_made_all_of_these_updates(run):
    """57 updates reached the target and counted as 15.

    The cheat used the latest gradient of each rank, one of them renewed in each update.
    """
    result, _ = run(IN_TURN, challenge=replace(BIG_BATCH, target=0))
    assert not result.problem and result.gradients == (2, 2, 2, 2) and result.updates == 8

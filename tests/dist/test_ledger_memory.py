"""The peak of tensor memory: known allocations, freed ones, what was there before, and stderr as it was."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from manyhands.ledger import Ledger, merge  # noqa: E402

MIB = 2**20


def peak(function):
    with Ledger(memory=True) as ledger:
        kept = function()
    del kept
    return ledger.peak_bytes


def one_after_the_other():
    for _ in range(3):
        torch.empty(MIB // 4)


def both_at_once():
    return torch.empty(MIB // 4), torch.empty(MIB, dtype=torch.uint8)


def test_known_allocations():
    assert peak(lambda: None) == 0
    assert peak(lambda: torch.empty(1000, dtype=torch.float64)) == 8000
    assert peak(one_after_the_other) == MIB and peak(both_at_once) == 2 * MIB
    assert peak(lambda: torch.empty(MIB, dtype=torch.uint8)[:10].view(5, 2)) == MIB, "a view is no allocation"
    assert peak(lambda: torch.empty(MIB).requires_grad_().numpy(force=True)) == 4 * MIB


def test_what_was_there_before_does_not_count():
    old = torch.empty(4 * MIB)

    def free_and_make():
        nonlocal old
        old = None
        return torch.empty(MIB)

    assert peak(free_and_make) == 4 * MIB


def test_what_an_earlier_block_made_does_not_count_when_a_later_one_frees_it():
    """torch's books keep memory that was made in one block and freed after it; its address may be given out again before the next."""
    for _ in range(20):
        assert peak(lambda: torch.empty(MIB)) == 4 * MIB
        old = [torch.empty(MIB)]  # often at the same address

        def make_and_free():
            new = torch.empty(1000)
            old.clear()  # noqa: B023
            return new, torch.empty(1000)

        assert peak(make_and_free) == 8000


def test_backward_is_seen():
    x, w = torch.ones(256, 256), torch.ones(256, 256, requires_grad=True)
    square = 256 * 256 * 4
    loss = (x @ w).exp().sum()
    # inside: the gradient of x @ w, then that of w; what forward kept is older than the block
    assert 2 * square <= peak(loss.backward) < 2 * square + 100
    assert w.grad is not None


def test_peaks_travel_with_the_account_and_are_none_unless_asked():
    with Ledger(memory=True) as ledger:
        torch.empty(25)
    assert merge([ledger.account()]).ranks[0]["peak_bytes"] == 100
    with Ledger() as ledger:
        torch.empty(25)
    assert ledger.peak_bytes is None


def test_one_at_a_time():
    from manyhands import comm

    with Ledger(memory=True) as outer:
        with pytest.raises(ValueError, match="another profiler"), Ledger(memory=True):
            raise AssertionError("not reached")
        torch.empty(10)
    assert outer.peak_bytes == 40 and not comm.observers


def test_an_exception_ends_the_count():
    for _ in range(2):
        with pytest.raises(KeyError), Ledger(memory=True) as ledger:
            torch.empty(10)
            raise KeyError
        assert ledger.peak_bytes == 40


def test_stderr_is_kept_but_for_one_line():
    program = """
import os, sys, torch
from manyhands.ledger import Ledger
old = torch.empty(1000)
with Ledger(memory=True) as ledger:
    del old
    os.write(2, b"one\\n")
    print("two", file=sys.stderr, flush=True)
os.write(2, b"three\\n")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "one\ntwo\nthree\n")


@pytest.mark.gpu
def test_on_a_gpu():
    torch.ones(1, device="cuda")
    before = torch.empty(MIB, device="cuda")
    with Ledger(memory=True) as ledger:
        for _ in range(2):
            torch.empty(MIB, device="cuda")
    assert ledger.peak_bytes == 4 * MIB
    del before

"""The peak of memory.

There are known tensors, freed ones, those that gloo's threads free, and what is said where it
cannot be counted.
"""

import builtins
import functools
import json
import time

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

from manyhands.ledger import Ledger, memory, merge  # noqa: E402

MIB = 2**20


def peak(function):
    """The peak of the second of two runs: the first brings in what it needs of the libraries."""
    for _ in range(2):
        with Ledger(memory=True) as ledger:
            result = function()
        del result
    return ledger.peak_bytes


def tensors(n, mib=1):
    return [torch.ones(mib * MIB // 4) for _ in range(n)]


def in_a_new_process(test):
    """Count in a new process, as a rank counts.

    A process that ran other tests has holes in its heap, and threads that take memory meanwhile.
    """

    @functools.wraps(test)
    def run():
        mp.spawn(_alone, args=(test.__name__,))

    return run


def _alone(rank, name):
    globals()[name].__wrapped__()


@in_a_new_process
def test_so_many_tensors_of_one_mebibyte_ten_times():
    for n in (1, 4, 32):
        peaks = [peak(lambda n=n: tensors(n)) for _ in range(10)]
        assert peaks == pytest.approx([n * MIB] * 10, rel=0.02)


@in_a_new_process
def test_what_is_freed_goes_back_at_once():
    def one_after_the_other():
        for _ in range(20):
            tensors(1, mib=8)

    assert 0.9 * 8 * MIB < peak(one_after_the_other) < 1.1 * 8 * MIB
    assert peak(lambda: tensors(8, mib=8)[0]) == pytest.approx(64 * MIB, rel=0.02), (
        "seven are freed before the block ends"
    )


@in_a_new_process
def test_what_was_made_and_freed_between_two_counts_leaves_no_holes():
    peak(lambda: None)
    made = tensors(16)
    del made[::2]

    def eight_small_ones_then_a_large_one():
        tensors(8)
        return tensors(1, mib=32)

    assert peak(eight_small_ones_then_a_large_one) == pytest.approx(32 * MIB, rel=0.06), (
        "with holes it would be 40"
    )
    assert len(made) == 8


@in_a_new_process
def test_nothing_is_a_few_pages():
    assert peak(lambda: None) < MIB // 16
    assert peak(lambda: tensors(1)[0][:10].view(5, 2)) < 1.1 * MIB, "a view is no tensor of its own"


@in_a_new_process
def test_memory_that_is_never_written_to_is_none():
    assert peak(lambda: torch.empty(64 * MIB)) < MIB


@in_a_new_process
def test_backward_is_seen():
    x, w = torch.ones(1024, 1024), torch.ones(1024, 1024, requires_grad=True)
    loss = (x @ w).exp().sum()
    square = 1024 * 1024 * 4
    # inside: the gradient of x @ w, then that of w; what forward kept is older than the block, and
    # stays
    assert peak(lambda: torch.autograd.grad(loss, w, retain_graph=True)) == pytest.approx(
        2 * square, rel=0.15
    )


def _gather():
    pieces = torch.empty(2 * MIB // 4)
    dist.all_gather_single(pieces, torch.ones(MIB // 4))


def _reduce():
    dist.all_reduce(torch.ones(MIB // 4))


def _work(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)

    def twenty(call):
        for _ in range(20):
            call()
            time.sleep(0.02)  # by then gloo's thread has let go of the tensors

    peaks = {
        call.__name__: peak(functools.partial(twenty, call)) / MIB for call in (_gather, _reduce)
    }
    (folder / f"rank-{rank}").write_text(json.dumps(peaks))
    dist.destroy_process_group()


def test_what_gloos_threads_free_is_seen(tmp_path):
    """20 times new tensors of 1 MiB and a collective with them.

    torch's profiler saw up to 21 of them at the same time, whenever gloo had let go of them.
    """
    mp.spawn(_work, args=(tmp_path,), nprocs=2)
    for rank in (0, 1):
        peaks = json.loads((tmp_path / f"rank-{rank}").read_text())
        # what gloo itself needs for a moment is in it
        assert 2.9 < peaks["_gather"] < 12 and 0.9 < peaks["_reduce"] < 6, peaks


def test_peaks_travel_with_the_account_and_are_none_unless_asked():
    with Ledger(memory=True) as ledger:
        tensors(1)
    assert merge([ledger.account()]).ranks[0]["peak_bytes"] == ledger.peak_bytes > 0
    with Ledger() as ledger:
        tensors(1)
    assert ledger.peak_bytes is None


def test_one_at_a_time():
    from manyhands import comm

    with Ledger(memory=True) as outer:
        with pytest.raises(ValueError, match="another such ledger"), Ledger(memory=True):
            raise AssertionError("not reached")
        tensors(2, mib=8)
    assert outer.peak_bytes > 0.95 * 16 * MIB and not comm.observers


def test_an_exception_ends_the_count():
    for _ in range(2):
        with pytest.raises(KeyError), Ledger(memory=True) as ledger:
            tensors(1, mib=8)
            raise KeyError
        assert ledger.peak_bytes > 0.9 * 8 * MIB


def test_another_profiler_may_be_at_work():
    with torch.profiler.profile(profile_memory=True), Ledger(memory=True) as ledger:
        tensors(1, mib=8)
    assert ledger.peak_bytes > 0.9 * 8 * MIB


def test_where_the_kernel_cannot_be_asked_it_says_so(monkeypatch):
    def refuse(path, *args, **kwargs):
        if path == "/proc/self/clear_refs":
            raise PermissionError(13, "Permission denied")
        return open(path, *args, **kwargs)

    monkeypatch.setattr(memory, "open", refuse, raising=False)
    with (
        pytest.raises(ValueError, match="Permission denied.*without memory=True"),
        Ledger(memory=True),
    ):
        raise AssertionError("not reached")
    monkeypatch.setattr(memory, "open", builtins.open, raising=False)
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    with pytest.raises(ValueError, match="not Linux"), Ledger(memory=True):
        raise AssertionError("not reached")


@pytest.mark.gpu
def test_on_a_gpu():
    torch.ones(1, device="cuda")
    before = torch.empty(MIB, device="cuda")
    with Ledger(memory=True) as ledger:
        for _ in range(2):
            torch.empty(MIB, device="cuda")
    assert ledger.peak_bytes == 4 * MIB
    del before

"""The right answers that unit 06's checks compare with, against PyTorch's own."""

import pytest

from manyhands.checks.ddp import verdicts
from manyhands.checks.ddp.words import CRITERIA, HINTS, MISTAKES


@pytest.mark.parametrize("n, world_size", [(10, 4), (12, 4), (3, 4), (1, 4), (7, 1), (20, 3)])
@pytest.mark.parametrize("epoch", [0, 5])
def test_dealt_is_torchs_distributed_sampler(n, world_size, epoch):
    torch = pytest.importorskip("torch")
    from torch.utils.data import DistributedSampler

    drawn = torch.randperm(n, generator=torch.Generator().manual_seed(3 + epoch)).tolist()
    for rank in range(world_size):
        theirs = DistributedSampler(range(n), world_size, rank, shuffle=True, seed=3)
        theirs.set_epoch(epoch)
        assert list(theirs) == verdicts.dealt(drawn, world_size)[rank]


def test_cut_closes_a_bucket_once_it_is_full():
    assert verdicts.cut(["a", "b", "c"], {"a": 8, "b": 8, "c": 4}, 10) == [["c", "b"], ["a"]]
    assert verdicts.cut(["a", "b", "c"], {"a": 8, "b": 8, "c": 4}, 4) == [["c"], ["b"], ["a"]]
    assert verdicts.cut(["a", "b", "c"], {"a": 8, "b": 8, "c": 4}, 100) == [["c", "b", "a"]]


def test_a_bucket_never_leaves_before_the_one_in_front():
    buckets = [[["c", 1], ["b", 2]], [["a", 4]]]
    sent = ["sent", "allreduce", 3], ["sent", "allreduce", 4]
    assert verdicts.schedule(buckets, ["c", "b", "a"]) == [["ready", "c"], ["ready", "b"], sent[0], ["ready", "a"], sent[1], ["end"]]
    assert verdicts.schedule(buckets, ["a", "c", "b"]) == [["ready", "a"], ["ready", "c"], ["ready", "b"], *sent, ["end"]]


@pytest.mark.parametrize("got, says", [
    ([8.0, 4.0], "4 times too large"), ([0.5, 0.25], "4 times too small"), ([5.0, 5.0], "rank's own gradient"),
    ([1.25, 1.25], "own gradient, divided"), (None, "is None"), ([0.0, 9.0], "neither the mean nor the sum")])
def test_a_wrong_average_is_named(got, says):
    assert says in verdicts.average_mistake(got, [2.0, 1.0], [5.0, 5.0], 4)


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())

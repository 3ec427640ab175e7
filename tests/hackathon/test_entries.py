"""Entries that are as they should be: torch's calls, DDP, the challenges' own ladders."""

from dataclasses import replace

import pytest

from conftest import QUICK
from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.judge import honesty

EASY = replace(QUICK, target=0)

CALLS = """
import torch, torch.distributed as dist

def train(model, batches, comm):
    rank, ones = comm.rank(), torch.ones(2, 3)
    assert (rank, comm.size()) == (dist.get_rank(), dist.get_world_size()) and comm.size() == 4
    x = ones * rank
    dist.all_reduce(x)
    assert torch.equal(x, ones * 6)
    x = (ones * rank).half().t()
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    assert x.dtype == torch.float16 and x.eq(3).all()
    parts = [torch.empty(2, 3) for _ in range(4)]
    dist.all_gather(parts, ones * rank)
    assert [part[0, 0].item() for part in parts] == [0, 1, 2, 3]
    whole = torch.empty(8, 3, dtype=torch.int32)
    dist.all_gather_single(whole, ones.int() * rank)
    assert whole[::2, 0].tolist() == [0, 1, 2, 3]
    mine = torch.empty(1, 3)
    dist.reduce_scatter_single(mine, torch.arange(12.0).view(4, 3))
    assert torch.equal(mine, torch.arange(12.0).view(4, 3)[rank:rank + 1] * 4)
    x = torch.empty(4, dtype=torch.int64)
    dist.all_to_all_single(x, torch.arange(4) + 10 * rank)
    assert x.tolist() == [rank, 10 + rank, 20 + rank, 30 + rank]
    x = torch.tensor([float(rank)])
    dist.broadcast(x, 2)
    assert x.item() == 2
    x = torch.tensor([float(rank)])
    dist.reduce(x, 1)
    assert x.item() == (6 if rank == 1 else rank)
    got = torch.empty(5)
    works = [dist.irecv(got, (rank - 1) % 4, tag=1), dist.isend(torch.full((5,), float(rank)), (rank + 1) % 4, tag=1)]
    for work in works:
        work.wait()
    assert got.eq((rank - 1) % 4).all()
    even = dist.new_group([0, 2])
    if rank in (0, 2):
        x = torch.ones(1)
        dist.all_reduce(x, group=even)
        assert x.item() == 2
    said = [None] * 4
    dist.all_gather_object(said, {"rank": rank})
    assert said == [{"rank": one} for one in range(4)]
    dist.barrier()
    try:
        dist.gather(torch.ones(1), [torch.ones(1)] * 4 if rank == 0 else None)
    except NotImplementedError as error:
        assert "has no gather: it has all_reduce" in str(error)
    else:
        raise AssertionError("gather")
    print("all calls")
"""


def test_the_calls_of_torch_distributed_do_what_they_do(run):
    result, printed = run(CALLS, challenge=EASY)
    assert result.problem == "" and printed == ["all calls"] * 4


BY_HAND = """
import torch, torch.distributed as dist

def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for _, batch in zip(range(5), batches):
        optimizer.zero_grad()
        model(batch).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
"""
WITH_DDP = """
import torch, torch.distributed as dist

def train(model, batches, comm):
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    {hook}
    for _, batch in zip(range(5), batches):
        optimizer.zero_grad()
        parallel(batch).backward()
        optimizer.step()
"""
HALVES = (
    "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks; "
    "parallel.register_comm_hook(None, default_hooks.fp16_compress_hook)"
)


def test_ddp_trains_as_by_hand_and_its_hooks_save_bytes(run):
    by_hand, whole, halved = (
        run(text, challenge=EASY)[0]
        for text in (BY_HAND, WITH_DDP.format(hook=""), WITH_DDP.format(hook=HALVES))
    )
    assert by_hand.problem == whole.problem == halved.problem == ""
    assert whole.accuracy == pytest.approx(by_hand.accuracy, abs=0.002)
    assert halved.sent_bytes[0] < 0.7 * whole.sent_bytes[0]


MISTAKES = {
    "def train(model, batches, comm)\n": "entry.py, line 1: SyntaxError: expected ':'",
    "def tarin(model, batches, comm):\n    pass\n": (
        "NameError: entry.py has no function train(model, batches, comm)."
    ),
    "import nowhere\n": "entry.py, line 1: ModuleNotFoundError: No module named 'nowhere'",
    "def train(model, batches):\n    pass\n": (
        "TypeError: train() takes 2 positional arguments but 3 were given"
    ),
    "def train(model, batches, comm):\n    model([1.0])\n": (
        "entry.py, line 2: TypeError: model(batch) takes a batch of `batches`"
    ),
    "def train(model, batches, comm):\n    raise SystemExit(3)\n": (
        "entry.py, line 2: SystemExit: 3"
    ),
}


@pytest.mark.parametrize("source", MISTAKES)
def test_a_mistake_is_told_with_its_line(run, source):
    result, _ = run(source)
    assert MISTAKES[source] in result.problem


def test_batches_end_at_the_limit(run):
    result, printed = run(
        "def train(model, batches, comm):\n    print(len(list(batches)))\n", challenge=EASY
    )
    assert printed == [str(EASY.most_batches)] * 4 and result.clock_s == 0


@pytest.mark.parametrize("name", sorted(set(CHALLENGES) - {"does_not_fit"}))
def test_each_entry_of_a_ladder_has_a_score_and_beats_the_baseline(run, name):
    challenge, scores = CHALLENGES[name], {}
    for stem, source in sources(challenge).items():
        result, _ = run(source, b"public 0", challenge)
        assert not result.problem and not honesty.flags([result]), stem
        scores[stem] = getattr(result, challenge.score)
    assert len(scores) > 3 and max(scores, key=scores.get) == "baseline"
    is_told(challenge, scores["baseline"])


FEW = 20  # steps: many messages are little time on the challenge's clock, and much on the test's


def test_all_ways_to_make_it_fit_train_the_same_and_beat_the_baseline(run):
    challenge, scores, right = CHALLENGES["does_not_fit"], {}, {}
    whole, _ = run(sources(challenge)["baseline"], b"public 0", challenge)
    assert not whole.problem
    is_told(challenge, whole.clock_s)
    for stem, source in sources(challenge).items():
        assert "= 70, 0.01" in source
        result, _ = run(
            source.replace("= 70, 0.01", f"= {FEW}, 0.01"),
            b"public 1",
            replace(challenge, target=0),
        )
        assert not result.problem and 0 < max(result.most_bytes) <= challenge.memory_bytes, stem
        scores[stem], right[stem] = result.clock_s, result.accuracy
    assert len(scores) > 3 and max(scores, key=scores.get) == "baseline"
    # 1/16 by chance
    assert (
        right == {stem: pytest.approx(right["baseline"], abs=0.01) for stem in right}
        and right["baseline"] > 0.12
    )


def sources(challenge):
    return {
        path.stem: path.read_text()
        for path in (
            challenge.folder / "baseline.py",
            *sorted(challenge.folder.glob("ladder/*.py")),
        )
    }


def is_told(challenge, score):
    assert challenge.baseline == pytest.approx(score, rel=0.005)
    assert (
        f"The baseline takes {score:.3g} {challenge.unit}"
        in (challenge.folder / "start.md").read_text()
    )

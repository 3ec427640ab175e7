"""Links on parts of a split communicator.

Two copies of a model, each on two ranks, are kept alike by DDP, or by the multi-node optimizer.
"""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from manyhands import functions, links

BATCH = 3


def parts():
    torch.manual_seed(7)
    return [nn.Sequential(nn.Linear(4, 5), nn.Tanh()).double(), nn.Linear(5, 2).double()]


def batches(copies):
    draw = torch.Generator().manual_seed(8)
    return [torch.randn(BATCH, 4, generator=draw, dtype=torch.float64) for _ in range(copies)]


def train(c, how):
    """Ranks 0, 1 are the first copy of the model, ranks 2, 3 the second one.

    The copies begin with other weights where rank 0's are to be copied.
    """
    copies = c.size // 2
    along, across = c.split(c.rank // 2), c.split(c.rank % 2)
    part = parts()[along.rank]
    if across.rank:
        for p in part.parameters():
            nn.init.zeros_(p)
    model = links.MultiNodeChainList(along)
    model.add_link(part, rank_in=0 if along.rank else None, rank_out=None if along.rank else 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if how == "DDP":
        model = DistributedDataParallel(model, process_group=across.process_group)
    else:
        optimizer = links.create_multi_node_optimizer(optimizer, across)
        optimizer.step()
    x = batches(copies)[across.rank]
    for _ in range(3):
        optimizer.zero_grad()
        result = model(x)
        (result.square().mean() if along.rank else result).backward()
        optimizer.step()
    weights = [p.detach().clone() for p in part.parameters()]
    del model  # DDP before its process group
    return weights


@pytest.mark.parametrize("how, n", [("DDP", 4), ("optimizer", 4), ("optimizer", 2)])
def test_copies_of_a_model_on_two_ranks_train_as_one_process(pool, how, n):
    alone = nn.Sequential(*parts())
    optimizer, x = torch.optim.SGD(alone.parameters(), lr=0.1), torch.cat(batches(n // 2))
    for _ in range(3):
        optimizer.zero_grad()
        alone(x).square().mean().backward()
        optimizer.step()
    for rank, weights in enumerate(pool.values(train, n, how)):
        torch.testing.assert_close(weights, [p.detach() for p in alone[rank % 2].parameters()])


def with_checkpoint(c, autocast):
    """A part that is computed again in backward, on both ranks; and mixed precision."""
    torch.manual_seed(c.rank)
    conv = links.ParallelConv2d.from_conv2d(nn.Conv2d(3, 4, 3), c)
    norm = links.MultiNodeBatchNorm(4, c)
    x = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    grads = []
    for again in (False, True):
        conv.zero_grad()
        norm.reset_running_stats()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            y = (
                checkpoint(lambda x: norm(conv(x)), x, use_reentrant=False)
                if again
                else norm(conv(x))
            )
            loss = (
                y.float()
                .square()
                .mul(functions.bcast(c, torch.arange(4.0).view(1, 4, 1, 1)))
                .mean()
            )
        loss.backward()
        grads.append((loss.item(), conv.weight.grad.clone()))
    return grads


@pytest.mark.parametrize("autocast", [False, True])
def test_checkpoint_and_autocast(pool, autocast):
    for (loss, plain), (again, recomputed) in pool.values(with_checkpoint, 2, autocast):
        assert loss == again and plain.abs().max() > 1e-6
        torch.testing.assert_close(recomputed, plain)

"""What autograd may do with the functions.

That is any order of backward, graphs that are dropped or kept, no_grad, checkpoint, autocast, DDP.
"""

import gc
import time

import pytest
import torch
from one_process import CALLS, inputs, outputs
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from manyhands import comm, functions

SIZES = {"small": 3, "large": 300_000}  # inside the head of a message, and after it


# --- the order of backward


def any_order(c, size, here, there):
    """Three messages with one tag.

    Rank 0 waits for their gradients in the order `here`, rank 1 sends them in the order `there`.
    """
    xs = [torch.full((size,), float(i), requires_grad=True) for i in range(3)]
    if c.rank == 0:
        delegates = [functions.send(x, c, 1) for x in xs]
        for i in here:
            delegates[i].backward()
        return [x.grad[-1].item() for x in xs]
    got = [functions.recv(c, 0) for _ in xs]
    for i in there:
        (got[i] * (10 + i)).sum().backward()
    return [y[0].item() for y in got]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "here, there", [((0, 1, 2), (2, 1, 0)), ((2, 0, 1), (0, 1, 2)), ((1, 2, 0), (0, 2, 1))]
)
def test_gradients_are_never_swapped(pool, size, here, there):
    assert pool.values(any_order, 2, SIZES[size], here, there) == [[10, 11, 12], [0, 1, 2]]


def two_sends(c, size):
    """The article's recipe, which hangs in ChainerMN: two delegates joined, one backward."""
    x = torch.ones(size, requires_grad=True)
    if c.rank == 0:
        first, second = functions.send(x * 2, c, 1), functions.send(x * 3, c, 2)
        psi = functions.pseudo_connect(first, second)
        psi.backward()
        return x.grad[0].item()
    (functions.recv(c, 0) * (1 + c.rank)).sum().backward()
    return None


@pytest.mark.parametrize("size", SIZES)
def test_two_sends_and_one_backward(pool, size):
    assert pool.values(two_sends, 3, SIZES[size])[0] == 2 * 2 + 3 * 3


def all_send_first(c, size):
    x = torch.full((size,), float(c.rank), requires_grad=True)
    delegate = functions.send(x, c, (c.rank + 1) % c.size)
    y = functions.recv(c, (c.rank - 1) % c.size, delegate)
    (y * (c.rank + 1)).sum().backward()
    return y[-1].item(), x.grad[-1].item()


@pytest.mark.parametrize("size", SIZES)
def test_all_ranks_send_first(pool, size):
    assert pool.values(all_send_first, 4, SIZES[size]) == [
        ((r - 1) % 4, (r + 1) % 4 + 1) for r in range(4)
    ]


def collectives_in_order(c, orders):
    """Two allgathers, one backward for each, on rank r in the order `orders[r]`."""
    x = torch.tensor(float(c.rank + 1), requires_grad=True)
    first, second = functions.allgather(c, x), functions.allgather(c, 10 * x)
    ends = [sum(y * 2 for y in first), sum(y * 3 for y in second)]
    message = None
    try:
        for i in orders[c.rank]:
            ends[i].backward()
    except comm.CommunicationError as error:
        message = str(error)
    first = second = ends = None
    return x.grad.item() if message is None else message, c.allreduce_obj(1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_collectives_backward_in_either_order(pool, order):
    assert pool.values(collectives_in_order, 3, [order] * 3) == [(3 * (2 + 30), 3)] * 3


def test_collectives_backward_in_two_orders_is_told(pool):
    """Each rank waits for the other's gradient.

    No order of messages can cure that, so it must be said, and then work again.
    """
    for message, size in pool.values(collectives_in_order, 2, [(0, 1), (1, 0)], timeout_s=2):
        assert (
            "allgather.backward" in message
            and "waits in allgather.backward" in message
            and size == 2
        )


def one_backward(c):
    """Two allgathers, used at different depths on each rank, and one backward.

    Autograd goes through them in one order on all ranks.
    """
    x = torch.tensor(0.1 * (c.rank + 1), requires_grad=True)
    first, second = sum(functions.allgather(c, x)), sum(functions.allgather(c, 10 * x))
    for _ in range(3):
        first, second = (first * 2, second) if c.rank == 0 else (first, second * 2)
    (first + second if c.rank else second + first).backward()
    return x.grad.item()


def test_collectives_in_one_backward(pool):
    assert pool.values(one_backward, 2) == pytest.approx([8 + 10 + 1 + 80] * 2)


# --- outputs that nobody uses


def dropped(c, what):
    """Rank 1 throws away what it got, or a part of it.

    What rank 0's tensors then have as gradients.
    """
    x, z = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    if what == "recv":
        if c.rank == 0:
            functions.send(x * 2, c, 1).backward()
        else:
            functions.recv(c, 0)
    elif what == "half of a tuple":
        if c.rank == 0:
            functions.send((x * 2, z * 2), c, 1).backward()
        else:
            functions.recv(c, 0)[1].sum().backward()
    else:
        y = (
            functions.allgather(c, x * 2)
            if what == "allgather"
            else (
                functions.bcast(c, x * 2, 0)
                if what == "bcast"
                else functions.alltoall(c, [x * 2, z * 2])
            )
        )
        y = y if what == "bcast" else y[0] + y[1]
        if c.rank == 0:
            y.sum().backward()
        del y
    return (
        x.grad if x.grad is None else x.grad.tolist(),
        z.grad if z.grad is None else z.grad.tolist(),
    )


@pytest.mark.parametrize(
    "what, first, second",
    [
        ("recv", None, None),
        ("half of a tuple", None, [2, 2]),
        ("allgather", [2, 2], None),
        ("bcast", [2, 2], None),
        ("alltoall", [2, 2], None),
    ],
)
def test_dropped_outputs_hang_nobody(pool, what, first, second):
    begun = time.monotonic()
    gradients = pool.values(dropped, 2, what, timeout_s=20)
    zeros = (None, [0, 0])
    assert gradients[0][0] == first or (first is None and gradients[0][0] in zeros)
    assert gradients[0][1] == second or (second is None and gradients[0][1] in zeros)
    assert time.monotonic() - begun < 15


def kept(c):
    """Rank 1 keeps what it got and never uses it.

    Rank 0's backward ends after the time-out; then both go on.
    """
    x = torch.ones(2, requires_grad=True)
    text = None
    if c.rank == 0:
        delegate = functions.send(x, c, 1)
        try:
            delegate.backward()
        except comm.CommunicationError as error:
            text = str(error)
        functions.send(torch.tensor(5.0), c, 1)
    else:
        y = functions.recv(c, 0)
        time.sleep(4)
        assert functions.recv(c, 0).item() == 5 and y.tolist() == [1, 1]
    c.barrier()
    return text


def test_kept_outputs_end_by_the_time_out(pool):
    text, other = pool.values(kept, 2, timeout_s=2)
    assert other is None and "rank 1" in text.lower() and "send" in text


def no_gradient_wanted(c):
    """Frozen inputs: backward still passes, and no gradient travels for them."""
    x = torch.ones(3)
    seen = []
    comm.observers.append(
        lambda kind, peer, nbytes, call, seconds, identity: seen.append((kind, call))
    )
    if c.rank == 0:
        functions.send(x, c, 1).backward()
    else:
        (functions.recv(c, 0) * torch.ones(3, requires_grad=True)).sum().backward()
    ys = functions.allgather(c, x)
    weight = torch.ones(3, requires_grad=True)
    (sum(ys) * weight).sum().backward()
    comm.observers.clear()
    return weight.grad.tolist(), [call for _, call in seen if "backward" in call]


def test_frozen_inputs(pool):
    assert pool.values(no_gradient_wanted, 2) == [([2, 2, 2], [])] * 2


def twice(c, call):
    """The gradient of a gradient: what is raised."""
    xs = inputs(call, c.size, c.rank)
    ys, delegate = outputs(c, call, xs)
    end = sum(torch.sin(y).sum() for y in ys) if ys else delegate
    if ys and delegate is not None:
        (end,) = functions.pseudo_connect(delegate, end)
    if not xs:
        end.backward(create_graph=True)
        return None
    try:
        sum((g * g).sum() for g in torch.autograd.grad(end, xs, create_graph=True)).backward()
    except RuntimeError as error:
        return str(error)
    return "no error"


@pytest.mark.parametrize("call", CALLS)
def test_double_backward_raises(pool, call):
    messages = [text for text in pool.values(twice, 2, call, timeout_s=5) if text is not None]
    assert any("differentiate twice" in text for text in messages) and "no error" not in messages, (
        messages
    )


# --- modes of autograd


def without_grad(c, who):
    """`who` runs forward under no_grad: its peers neither hang nor fail."""
    x = torch.ones(2, requires_grad=True)
    off = c.rank in who
    with torch.set_grad_enabled(not off):
        end = functions.send(x * 2, c, 1) if c.rank == 0 else functions.recv(c, 0).sum() * 3
        ys = functions.allgather(c, x * 5)
        end = end + (ys[0] + 7 * ys[1]).sum()
        again = functions.bcast(c, x, 0)
        end = end + again.sum()
    assert end.requires_grad != off
    gc.collect()
    if not off:
        end.backward()
    return 0 if x.grad is None else x.grad[0].item()


@pytest.mark.parametrize(
    "who, gradients",
    [((0, 1), [0, 0]), ((0,), [0, 35]), ((1,), [6, 0]), ((), [6 + 10 + 2, 70])],
    ids=["both", "rank 0", "rank 1", "none"],
)
def test_no_grad(pool, who, gradients):
    if who == (1,):
        gradients = [5 + 1, 0]  # its own uses only
    assert pool.values(without_grad, 2, who) == gradients


def recomputed(c, reentrant):
    """A collective, and a send and its recv, inside checkpoints.

    Forward runs twice, on both sides alike.
    """
    torch.manual_seed(0)
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    runs = []

    def gathered(x):
        runs.append(1)
        return sum((i + 1) * y for i, y in enumerate(functions.allgather(c, torch.tanh(first(x)))))

    def sent(x):
        return functions.send(torch.tanh(second(x)), c, 1)

    def received(x):
        return torch.sin(functions.recv(c, 0)) * x

    x = torch.arange(3.0).add(c.rank).requires_grad_()
    y = checkpoint(gathered, x, use_reentrant=reentrant)
    end = checkpoint(sent if c.rank == 0 else received, y, use_reentrant=reentrant)
    end.sum().backward()
    return (
        len(runs),
        [p.grad for p in (x, *first.parameters())],
        [p.grad for p in second.parameters()],
    )


def recomputed_alone():
    """The same mathematics in one process."""
    torch.manual_seed(0)
    pair = [(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))]
    pair.append((torch.nn.Linear(3, 3), None))
    pair[1][0].load_state_dict(pair[0][0].state_dict())
    xs = [torch.arange(3.0).add(rank).requires_grad_() for rank in range(2)]
    parts = [torch.tanh(pair[rank][0](xs[rank])) for rank in range(2)]
    y = parts[0] + 2 * parts[1]
    (torch.sin(torch.tanh(pair[0][1](y))) * y).sum().backward()
    return [[p.grad for p in (xs[rank], *pair[rank][0].parameters())] for rank in range(2)], [
        p.grad for p in pair[0][1].parameters()
    ]


@pytest.mark.parametrize("reentrant", [False, True], ids=["saved tensors", "reentrant"])
def test_checkpoint(pool, reentrant):
    results, (of_first, of_second) = pool.values(recomputed, 2, reentrant), recomputed_alone()
    assert [runs for runs, *_ in results] == [2, 2]
    for rank in range(2):
        for got, expected in zip(results[rank][1], of_first[rank], strict=True):
            torch.testing.assert_close(got, expected)
    for got, expected in zip(results[0][2], of_second, strict=True):
        torch.testing.assert_close(got, expected)


def mixed_precision(c):
    """A pipeline of two layers under autocast.

    What travels is bfloat16, both ways, and the weights' gradients are float32.
    """
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]
    x, seen = torch.arange(8.0).reshape(2, 4) / 8, []
    comm.observers.append(lambda kind, peer, nbytes, call, seconds, identity: seen.append(nbytes))
    with torch.autocast("cpu", torch.bfloat16):
        if c.rank == 0:
            end = functions.send(layers[0](x), c, 1)
        else:
            got = functions.recv(c, 0)
            assert got.dtype == torch.bfloat16
            end = layers[1](got).float().square().sum()
    end.backward()
    comm.observers.clear()
    with torch.autocast("cpu", torch.bfloat16):
        alone = layers[c.rank].weight.grad.clone()
        layers[c.rank].zero_grad()
        layers[1](layers[0](x)).float().square().sum().backward()
    return alone, layers[c.rank].weight.grad, seen


def test_autocast(pool):
    for got, expected, seen in pool.values(mixed_precision, 2):
        assert got.dtype == torch.float32 and torch.equal(got, expected) and seen == [16, 16]


def hybrid(c, steps):
    """Four ranks as two pipelines of two stages.

    DDP averages each stage's gradients over the pipelines.
    """
    pipeline, stages = c.split(c.rank // 2), c.split(c.rank % 2)
    torch.manual_seed(5 + c.rank % 2)
    stage = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()).double()
    model = DistributedDataParallel(stage, process_group=stages.process_group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    batch = torch.arange(48.0).sin().reshape(12, 4).double()[6 * stages.rank : 6 * stages.rank + 6]
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        if pipeline.rank == 0:
            functions.send(model(batch), pipeline, 1).backward()
        else:
            loss = (model(functions.recv(pipeline, 0)) - batch).square().mean()
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses, [p.detach() for p in stage.parameters()]


def hybrid_alone(steps):
    stages = []
    for i in range(2):
        torch.manual_seed(5 + i)
        stages.append(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()).double())
    model = torch.nn.Sequential(*stages)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    batch, losses = torch.arange(48.0).sin().reshape(12, 4).double(), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, [[p.detach() for p in stage.parameters()] for stage in stages]


def test_pipelines_inside_ddp(pool):
    """Data x model parallelism equals one process on the whole batch, step by step."""
    results, (losses, parameters) = pool.values(hybrid, 4, 4), hybrid_alone(4)
    assert [
        (a + b) / 2 for a, b in zip(results[1][0], results[3][0], strict=True)
    ] == pytest.approx(losses, rel=1e-12)
    for rank in range(4):
        for got, expected in zip(results[rank][1], parameters[rank % 2], strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def used_many_times(c):
    """One received tensor used in several places, and retain_graph.

    Each backward passes on what it has.
    """
    x = torch.ones(2, requires_grad=True)
    if c.rank == 0:
        delegate = functions.send(x, c, 1)
        delegate.backward()
        return x.grad.tolist()
    y = functions.recv(c, 0)
    (y.sum() + (y * y).sum() + functions.pseudo_connect(y, y * 4)[0].sum()).backward()
    return None


def test_one_message_used_in_several_places(pool):
    assert pool.values(used_many_times, 2)[0] == [7, 7]


def delegates(c):
    """What a delegate is.

    It is a zero that can be added to a loss, or start backward, and that joins anything.
    """
    x = torch.ones(2, requires_grad=True)
    if c.rank == 0:
        delegate = functions.send(x, c, 1)
        facts = [tuple(delegate.shape), delegate.item(), delegate.requires_grad]
        loss = (x * 3).sum() + delegate
        loss.backward()
        return facts, loss.item(), x.grad.tolist()
    joined = functions.pseudo_connect(None, functions.recv(c, 0) * 2)
    (joined[0].sum()).backward()
    return isinstance(joined, tuple), len(joined)


def test_delegates(pool):
    assert pool.values(delegates, 2) == [([(), 0, True], 6, [5, 5]), (True, 1)]


def a_sum_that_nobody_uses(c):
    """The gradient of an allreduce is None where its only user got none.

    Then there are zeros, and no rank waits.
    """
    x = torch.ones(2, requires_grad=True)
    delegate = functions.send(functions.allreduce(c, x), c, 1 - c.rank)
    got = functions.recv(c, 1 - c.rank, delegate)
    end = functions.pseudo_connect(delegate, torch.ones(()))[0] + (0 if c.rank else got.sum())
    del got  # rank 1 has not used it
    end.backward()
    return x.grad


def test_a_sum_that_nobody_uses(pool):
    # rank 1's sum, which rank 0 uses, has ones as its gradient; rank 0's, which rank 1 does not
    # use, has none: together ones, on both ranks
    assert all(torch.equal(grad, torch.ones(2)) for grad in pool.values(a_sum_that_nobody_uses, 2))


def rows_of_a_sum(c):
    """A gradient that is sparse."""
    table = torch.ones(5, 2, requires_grad=True)
    torch.nn.functional.embedding(
        torch.tensor([c.rank]), functions.allreduce(c, table), sparse=True
    ).sum().backward()
    layer = torch.nn.Embedding(5, 2, sparse=True)
    layer(torch.tensor([c.rank])).sum().backward()
    c.multi_node_mean_grad(layer)
    return table.grad, layer.weight.grad


def test_sparse_gradients_are_summed(pool):
    rows = torch.tensor([[1.0], [1.0], [0.0], [0.0], [0.0]]).expand(5, 2)
    for of_sum, mean in pool.values(rows_of_a_sum, 2):
        assert torch.equal(of_sum, rows) and torch.equal(mean, rows / 2)


def test_each_of_the_connected_gets_its_own_gradient():
    phi, w = torch.zeros((), requires_grad=True), torch.zeros(2, requires_grad=True)
    functions.pseudo_connect(phi, torch.arange(3), w).backward([None, torch.full((2,), 7.0)])
    assert torch.equal(w.grad, torch.full((2,), 7.0))
    with pytest.raises(ValueError, match="3 gradients for 2 tensors"):
        functions.pseudo_connect(phi, torch.zeros(2), w).backward([None] * 3)

"""The challenge's network.

Its clocks are compared with the models of unit 05, its results with torch, and the order in which a
machine happens to do things changes nothing.
"""

import asyncio
import random

import pytest
import torch

from manyhands.checks.hackathon import cases
from manyhands.hackathon.judge.network import (
    ANYBODY,
    HEAD_BYTES,
    MOST_KEPT_BYTES,
    Network,
    Operation,
    RefusedError,
    results,
)
from manyhands.simulate import message_s, ring_s, tree_s

RATE_MBIT, DELAY_MS = 10, 5
LINK = DELAY_MS / 1e3, RATE_MBIT * 1e6 / 8
HEAD_S = HEAD_BYTES / LINK[1]


def network(ranks=4):
    return Network(ranks, RATE_MBIT, DELAY_MS)


def collective(rank, call, data, ranks=4, **more):
    return Operation(
        rank,
        call,
        members=tuple(range(ranks)),
        data=data,
        dtype=str(data.dtype).removeprefix("torch."),
        **more,
    )


def send(rank, peer, n_bytes, tag=0):
    return Operation(rank, "send", peer=peer, tag=tag, data=torch.zeros(n_bytes, dtype=torch.uint8))


def receive(rank, peer, tag=0):
    return Operation(rank, "recv", peer=peer, tag=tag, data=torch.empty(0))


def play(net, *programs):
    """Run a program for each rank: a function of the network, a coroutine."""

    async def all_of_them():
        async def run_rank(rank, program):
            await program(net, rank)
            net.leave(rank)

        await asyncio.gather(*(run_rank(rank, program) for rank, program in enumerate(programs)))

    asyncio.run(all_of_them())
    return net


async def do(net, operation):
    net.start(operation)
    return await net.wait(operation)


@pytest.mark.parametrize(
    "call, seconds",
    [
        ("all_reduce", lambda p, n: ring_s(p, n, *LINK) + 2 * (p - 1) * HEAD_S),
        ("reduce_scatter", lambda p, n: (p - 1) * (message_s(n / p, *LINK) + HEAD_S)),
        ("all_gather", lambda p, n: (p - 1) * (message_s(n, *LINK) + HEAD_S)),
        ("broadcast", lambda p, n: tree_s(p, n, *LINK) / 2 + (p - 1).bit_length() * HEAD_S),
        ("reduce", lambda p, n: tree_s(p, n, *LINK) / 2 + (p - 1).bit_length() * HEAD_S),
    ],
)
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_a_collective_takes_what_the_models_say(call, seconds, ranks):
    async def program(net, rank):
        net.compute(rank, rank / 10)  # all wait for the last
        await do(net, collective(rank, call, torch.zeros(600 * ranks), ranks))

    clocks = play(network(ranks), *[program] * ranks).clock_s
    assert (
        clocks
        == [pytest.approx((ranks - 1) / 10 + seconds(ranks, 2400 * ranks), rel=1e-12)] * ranks
    )


@pytest.mark.parametrize("seed", [0, 4711])
def test_what_lab_20_prices_is_what_the_network_counts(seed):
    """The entries of its exercise 2, played here to the end."""

    def entry(steps, every, tensors, ranks, gradient_s, call):
        async def program(net, rank):
            for step in range(1, steps + 1):
                net.compute(rank, gradient_s)
                for n_bytes in tensors if step % every == 0 else ():
                    await do(net, collective(rank, call, torch.zeros(n_bytes // 4), ranks))

        return program

    asked = [(case, *case.arguments, "all_reduce") for case in cases.entries(seed)]
    asked += [
        (case, steps, 1, [n], ranks, gradient_s, seconds_of, "all_gather")
        for case in cases.gathers(seed)
        for steps, n, ranks, gradient_s, seconds_of in [case.arguments]
    ]
    for case, steps, every, tensors, ranks, gradient_s, seconds_of, call in asked:
        net = Network(ranks, 8e-6 / (seconds_of(1) - seconds_of(0)), 1e3 * seconds_of(-HEAD_BYTES))
        clocks = play(net, *[entry(steps, every, tensors, ranks, gradient_s, call)] * ranks).clock_s
        assert clocks == [pytest.approx(case.right, rel=1e-9)] * ranks, case.question


def test_updates_add_up_along_messages_and_not_beside_them():
    async def first(net, rank):
        net.updates[rank] += 3
        await do(net, send(rank, 1, 8))
        net.updates[rank] += 5  # after the message has left: its receiver knows nothing of them

    async def second(net, rank):
        net.updates[rank] += 2
        await do(net, receive(rank, 0))
        assert net.updates[rank] == 3
        net.updates[rank] += 1
        await do(
            net, Operation(rank, "all_reduce", members=(1, 2), data=torch.zeros(4), dtype="float32")
        )

    async def third(net, rank):
        await do(
            net, Operation(rank, "all_reduce", members=(1, 2), data=torch.zeros(4), dtype="float32")
        )

    assert play(network(3), first, second, third).updates == [8, 4, 4]


def test_a_message_takes_its_size_and_the_delay_and_its_sender_only_the_size():
    async def sender(net, rank):
        await do(net, send(rank, 1, 12_500))

    async def receiver(net, rank):
        await do(net, receive(rank, 0))

    taken_s = (12_500 + HEAD_BYTES) / LINK[1]
    assert play(network(2), sender, receiver).clock_s == pytest.approx([taken_s, taken_s + LINK[0]])


def test_messages_to_one_rank_share_its_link():
    async def sender(net, rank):
        net.start(send(rank, 0, 12_500))

    async def receiver(net, rank):
        for peer in (3, 1, 2):
            await do(net, receive(rank, peer))

    assert play(network(), receiver, *[sender] * 3).clock_s[0] == pytest.approx(
        3 * (12_500 + HEAD_BYTES) / LINK[1] + LINK[0]
    )


def test_a_collective_that_is_waited_for_later_overlaps_with_computing():
    async def program(net, rank):
        operation = collective(rank, "all_reduce", torch.zeros(1000))
        net.start(operation)
        net.compute(rank, 1.0)
        await net.wait(operation)

    assert play(network(), *[program] * 4).clock_s == [1.0] * 4


async def program_of_many_kinds(net, rank):
    for step in range(5):
        await asyncio.sleep(random.random() / 500)  # the machine is busy with something else
        net.compute(rank, 0.01 * (rank + 1))
        early = collective(rank, "all_reduce", torch.full((1000,), float(rank)))
        net.start(early)
        await asyncio.sleep(random.random() / 500)
        net.start(send(rank, (rank + 1) % 4, 1000 * (rank + step + 1)))
        await do(net, receive(rank, (rank - 1) % 4))
        await net.wait(early)
        if rank < 2:
            await do(net, Operation(rank, "all_gather", members=(0, 1), data=torch.ones(10)))


def test_clocks_do_not_depend_on_who_comes_first():
    clocks = {tuple(play(network(), *[program_of_many_kinds] * 4).clock_s) for _ in range(10)}
    assert len(clocks) == 1


def test_who_waits_for_whom_is_told_when_none_can_go_on():
    async def waits(net, rank):
        await do(net, receive(rank, 1 - rank, tag=3))

    with pytest.raises(
        RefusedError,
        match=(
            r"none of them can continue: Rank 0 waits in recv from rank 1 \(tag 3\). Rank 1 waits"
            r" in recv from rank 0"
        ),
    ):
        play(network(2), waits, waits)


def test_collectives_that_do_not_fit_are_told():
    async def program(net, rank):
        await do(net, collective(rank, "all_reduce", torch.zeros(1 + rank), 2))

    with pytest.raises(
        RefusedError, match="rank 0: all_reduce of 1 float32, rank 1: all_reduce of 2 float32"
    ):
        play(network(2), program, program)


def test_what_is_kept_has_a_limit_and_is_let_go():
    net, size = network(2), 2**22

    async def sender(net, rank):
        for _ in range(3 * MOST_KEPT_BYTES // size):
            await do(net, send(rank, 1, size))
            await do(net, receive(rank, 1))

    async def receiver(net, rank):
        for _ in range(3 * MOST_KEPT_BYTES // size):
            await do(net, receive(rank, 0))
            await do(net, send(rank, 0, 1))

    play(net, sender, receiver)
    assert net._kept_bytes == [0, 0]
    with pytest.raises(RefusedError, match="64 MiB under way"):
        for _ in range(MOST_KEPT_BYTES // size):
            net.start(send(0, 1, size))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_results_are_those_of_torch(ranks):
    torch.manual_seed(0)
    data = [torch.randn(6 * ranks) for _ in range(ranks)]

    def given(call, **more):
        return results(
            [collective(rank, call, tensor, ranks, **more) for rank, tensor in enumerate(data)]
        )

    total, parts = sum(data), 6
    assert all(torch.equal(result, total) for result in given("all_reduce"))
    assert all(torch.equal(result, total / ranks) for result in given("all_reduce", how="avg"))
    assert all(
        torch.equal(result, torch.stack(data).amax(0)) for result in given("all_reduce", how="max")
    )
    assert all(torch.equal(result, torch.cat(data)) for result in given("all_gather"))
    assert all(
        torch.equal(result, total.split(parts)[rank])
        for rank, result in enumerate(given("reduce_scatter"))
    )
    assert all(
        torch.equal(result, data[ranks - 1]) for result in given("broadcast", root=ranks - 1)
    )
    assert torch.equal(given("reduce", root=0)[0], total)
    swapped = given("all_to_all", splits=(parts,) * ranks)
    assert all(
        torch.equal(result, torch.cat([x.split(parts)[rank] for x in data]))
        for rank, result in enumerate(swapped)
    )


def anybody(rank):
    return receive(rank, ANYBODY)


@pytest.mark.parametrize("seed", range(20))
def test_from_anybody_comes_what_arrives_first_by_the_clocks(seed):
    draw, came = random.Random(seed), []

    async def pause():
        for _ in range(draw.randrange(6)):
            await asyncio.sleep(0)

    async def server(net, rank):
        for _ in range(9):
            await pause()
            operation = anybody(rank)
            await do(net, operation)
            came.append((operation.peer, round(operation.end_s, 6)))
            await do(net, send(rank, operation.peer, 1000))

    def worker(step_s):
        async def program(net, rank):
            for _ in range(3):
                await pause()
                net.compute(rank, step_s)
                await pause()
                await do(net, send(rank, 0, 1000))
                await do(net, receive(rank, 0))

        return program

    clocks = play(network(), server, worker(0.03), worker(0.02), worker(0.3)).clock_s
    assert [peer for peer, _ in came] == [2, 1, 2, 1, 2, 1, 3, 3, 3]
    assert [at for _, at in came] == sorted(at for _, at in came)
    there_and_back_s = 2 * ((1000 + HEAD_BYTES) / LINK[1] + LINK[0])
    assert clocks[1:] == pytest.approx(
        [3 * (step_s + there_and_back_s) for step_s in (0.03, 0.02, 0.3)]
    )


def test_two_who_receive_from_anybody_go_on_in_the_order_of_their_clocks():
    """Rank 1 could still send what rank 0 gets first."""
    came = []

    async def first(net, rank):
        operation = anybody(rank)
        await do(net, operation)
        came.append(operation.peer)

    async def second(net, rank):
        await do(net, anybody(rank))
        await do(net, send(rank, 0, 10))

    async def third(net, rank):
        net.compute(rank, 0.1)
        net.start(send(rank, 1, 10))
        net.compute(rank, 0.1)
        net.start(send(rank, 0, 10))

    play(network(3), first, second, third)
    assert came == [1]


def test_nobody_left_to_send_is_told():
    async def waits(net, rank):
        with pytest.raises(
            RefusedError, match="Rank 0 waits in recv from anybody .tag 0.. Rank 1 has returned."
        ):
            await do(net, anybody(rank))

    async def returns(net, rank):
        pass

    play(network(2), waits, returns)

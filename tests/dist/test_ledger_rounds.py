"""The account over all ranks, which are four processes.

It has rounds by their definition, models of collectives, DDP without a hook, and leaves nothing
behind.
"""

import gc
import pickle

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

from manyhands import comm  # noqa: E402
from manyhands.ledger import Ledger, merge  # noqa: E402

N = 4


def _work(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=N)
    results = {
        experiment.__name__: experiment(rank)
        for experiment in (_patterns, _collectives, _overlap, _ddp, _strange, _nothing_left)
    }
    (folder / f"rank-{rank}").write_bytes(pickle.dumps(results))
    dist.barrier()
    gc.collect()
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory, forkserver):
    """What the experiments below have reported: {name: [of rank 0, of rank 1, ...]}."""
    folder = tmp_path_factory.mktemp("ledger")
    mp.start_processes(_work, args=(folder,), nprocs=N, start_method="forkserver")
    ranks = [pickle.loads((folder / f"rank-{rank}").read_bytes()) for rank in range(N)]
    return {name: [result[name] for result in ranks] for name in ranks[0]}


def over_all(accounts, *key):
    """The accounts under a key that some ranks have, merged."""
    for part in key:
        accounts = [account.get(part) for account in accounts if account]
    return merge([account for account in accounts if account])


# --- patterns of messages -------------------------------------------------------------------------


def ring(x, group, rank, p):
    parts, right, left = list(x.tensor_split(p)), (rank + 1) % p, (rank - 1) % p
    for gather in (0, 1):
        for s in range(p - 1):
            into = torch.empty_like(parts[(left + gather - s) % p])
            work = dist.isend(parts[(rank + gather - s) % p], group=group, group_dst=right)
            dist.recv(into, group=group, group_src=left)
            work.wait()
            (
                parts[(left + gather - s) % p].copy_(into)
                if gather
                else parts[(left - s) % p].add_(into)
            )


def gather_and_send(x, group, rank, p):
    if rank:
        dist.send(x, group=group, group_dst=0)
        dist.recv(x, group=group, group_src=0)
        return
    for source in range(1, p):
        part = torch.empty_like(x)
        dist.recv(part, group=group, group_src=source)
        x += part
    for work in [dist.isend(x, group=group, group_dst=dest) for dest in range(1, p)]:
        work.wait()


def doubling(x, group, rank, p):
    for k in range(p.bit_length() - 1):
        other, work = torch.empty_like(x), dist.isend(x, group=group, group_dst=rank ^ 2**k)
        dist.recv(other, group=group, group_src=rank ^ 2**k)
        work.wait()
        x += other


def tree(x, group, rank, p):
    for k in range((p - 1).bit_length()):
        if rank < 2**k and rank + 2**k < p:
            dist.send(x, group=group, group_dst=rank + 2**k)
        elif 2**k <= rank < 2 ** (k + 1):
            dist.recv(x, group=group, group_src=rank - 2**k)


def one_after_the_other(x, group, rank, p):
    if rank:
        dist.recv(x, group=group, group_src=0)
    else:
        for dest in range(1, p):
            dist.send(x, group=group, group_dst=dest)


def all_to_all(x, group, rank, p):
    others = [i for i in range(p) if i != rank]
    ops = [dist.P2POp(dist.isend, x, group=group, group_peer=i) for i in others]
    ops += [dist.P2POp(dist.irecv, torch.empty_like(x), group=group, group_peer=i) for i in others]
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def pipeline(x, group, rank, p):
    for _ in range(5):
        if rank:
            dist.recv(x, group=group, group_src=rank - 1)
        if rank < p - 1:
            dist.send(x, group=group, group_dst=rank + 1)


PATTERNS = (ring, gather_and_send, doubling, tree, one_after_the_other, all_to_all, pipeline)


def _patterns(rank):
    accounts = {}
    for members in ((1, 3), (0, 2, 3), (0, 1, 2, 3)):
        group = dist.new_group(members)
        for pattern in PATTERNS:
            p = len(members)
            if rank not in members or (pattern is doubling and p == 3):
                continue
            x = torch.full((12,), 1.0 + rank)
            with Ledger() as ledger:
                pattern(x, group, members.index(rank), p)
            alone = {
                name: getattr(ledger, name)
                for name in (
                    "messages_sent",
                    "messages_received",
                    "bytes_sent",
                    "bytes_received",
                    "rounds",
                )
            }
            accounts[pattern.__name__, p] = {
                "account": ledger.account(),
                "alone": alone,
                "x": x.tolist(),
            }
    return accounts


@pytest.mark.parametrize("p, members", [(2, (1, 3)), (3, (0, 2, 3)), (4, (0, 1, 2, 3))])
def test_rounds_of_patterns(results, p, members):
    def rounds(pattern):
        return over_all(results["_patterns"], (pattern.__name__, p), "account").rounds

    assert rounds(ring) == 2 * (p - 1)
    assert rounds(gather_and_send) == 2
    assert rounds(tree) == (p - 1).bit_length()
    assert rounds(one_after_the_other) == p - 1, (
        "a send that is waited for comes before the next one"
    )
    assert rounds(all_to_all) == 1, "what is under way together is one round"
    assert rounds(pipeline) == 5 + p - 2
    if p != 3:
        assert rounds(doubling) == p.bit_length() - 1


@pytest.mark.parametrize("p, members", [(2, (1, 3)), (3, (0, 2, 3)), (4, (0, 1, 2, 3))])
def test_a_rank_alone(results, p, members):
    total = float(sum(1 + rank for rank in members))
    for rank in members:
        mine = results["_patterns"][rank]["ring", p]
        assert mine["x"] == [total] * 12  # the ring is right, so this is what a right one costs
        assert mine["alone"] == {
            "messages_sent": 2 * (p - 1),
            "messages_received": 2 * (p - 1),
            "bytes_sent": 2 * (p - 1) * 48 // p,
            "bytes_received": 2 * (p - 1) * 48 // p,
            "rounds": 2 * (p - 1),
        }
        assert results["_patterns"][rank]["all_to_all", p]["alone"]["rounds"] == 1


def test_each_message_has_two_ends(results):
    for pattern in PATTERNS:
        merged = over_all(results["_patterns"], (pattern.__name__, 4), "account")
        ends = {
            kind: {
                (event.key, event.round, event.bytes): (rank, event.peer)
                for rank, events in enumerate(merged.events)
                for event in events
                if event.kind == kind
            }
            for kind in ("sent", "received")
        }
        assert {key: ends["received"][key][::-1] for key in ends["sent"]} == ends["sent"]
        assert len(ends["sent"]) == merged.messages


def test_log_and_tables(results):
    merged = over_all(results["_patterns"], ("tree", 4), "account")
    assert (
        merged.log() == "round  call       from  to  bytes\n"
        "    1  dist.send     0   1     48\n"
        "    2  dist.send     0   2     48\n"
        "    2  dist.send     1   3     48"
    )
    assert (
        merged.table() == "call       messages out  messages in  bytes out  bytes in  rounds\n"
        "dist.send             3            0        144         0       2  counted\n"
        "dist.recv             0            3          0       144       2  counted\n"
        "all                   3            3        144       144       2"
    )
    assert merged.table(3).splitlines()[-1].split() == ["all", "0", "1", "0", "48", "2"]
    assert (merged.messages, merged.bytes) == (3, 144) and [
        row["rank"] for row in merged.ranks
    ] == [0, 1, 2, 3]


# --- collectives ----------------------------------------------------------------------------------


def calls(group, rank, p):
    """Collectives of 12 float64 numbers a rank, root 1 of the group."""
    x, out = (
        torch.ones(12, dtype=torch.float64),
        [torch.empty(12, dtype=torch.float64) for _ in range(p)],
    )
    at_root = out if rank == 1 else None
    big = torch.ones(12 * p, dtype=torch.float64)
    rows = [j + 1 for j in range(p)], [rank + 1] * p
    return {
        "allreduce": lambda: dist.all_reduce(x, group=group),
        "broadcast": lambda: dist.broadcast(x, group=group, group_src=1),
        "reduce": lambda: dist.reduce(x, group=group, group_dst=1),
        "allgather": lambda: dist.all_gather(out, x, group=group),
        "gather": lambda: dist.gather(x, at_root, group=group, group_dst=1),
        "scatter": lambda: dist.scatter(x, at_root, group=group, group_src=1),
        "reduce_scatter": lambda: dist.reduce_scatter(x, out, group=group),
        "alltoall": lambda: dist.all_to_all(
            out, [torch.ones(12, dtype=torch.float64) for _ in range(p)], group=group
        ),
        "all_to_all_single": lambda: dist.all_to_all_single(
            torch.empty(sum(rows[0])), torch.empty(sum(rows[1])), *rows, group=group
        ),
        "all_gather_single": lambda: dist.all_gather_single(big, x, group=group),
        "reduce_scatter_single": lambda: dist.reduce_scatter_single(x, big, group=group),
        "barrier": lambda: dist.barrier(group=group),
        "monitored_barrier": lambda: dist.monitored_barrier(group=group),
    }


def _collectives(rank):
    accounts = {}
    for members in ((1, 3), (0, 2, 3), (0, 1, 2, 3)):
        group = dist.new_group(members)
        if rank in members:
            for name, call in calls(group, members.index(rank), len(members)).items():
                with Ledger() as ledger:
                    call()
                accounts[name, len(members)] = ledger.account()
    return accounts


@pytest.mark.parametrize("p", (2, 3, 4))
def test_collectives_by_their_models(results, p):
    size, log = 96, (p - 1).bit_length()
    expected = {  # messages and bytes of all ranks together, rounds
        "allreduce": (2 * p * (p - 1), 2 * (p - 1) * size, 2 * (p - 1)),
        "broadcast": (p - 1, (p - 1) * size, log),
        "reduce": (p - 1, (p - 1) * size, log),
        "allgather": (p * (p - 1), p * (p - 1) * size, p - 1),
        "gather": (p - 1, (p - 1) * size, 1),
        "scatter": (p - 1, (p - 1) * size, 1),
        "reduce_scatter": (p * (p - 1), p * (p - 1) * size, p - 1),
        "alltoall": (p * (p - 1), p * (p - 1) * size, 1),
        "all_to_all_single": (p * (p - 1), sum(4 * (i + 1) for i in range(p)) * (p - 1), 1),
        "all_gather_single": (p * (p - 1), p * (p - 1) * size, p - 1),
        "reduce_scatter_single": (p * (p - 1), p * (p - 1) * size, p - 1),
        "barrier": (p * log, 0, log),
        "monitored_barrier": (2 * (p - 1), 0, 2),
    }
    for name, numbers in expected.items():
        merged = over_all(results["_collectives"], (name, p))
        assert (merged.messages, merged.bytes, merged.rounds) == numbers, name
        (row,) = merged.by_call().values()
        assert (row.messages_received, row.bytes_received) == numbers[
            :2
        ] and row.how != "counted", name
        for rank in merged.ranks:
            if name in ("allreduce", "allgather", "reduce_scatter", "alltoall"):
                assert (
                    rank["messages_sent"] * p == numbers[0] and rank["bytes_sent"] * p == numbers[1]
                )
        keys = [
            sorted(event.key for events in merged.events for event in events if event.kind == kind)
            for kind in ("sent", "received")
        ]
        assert keys[0] == keys[1], name


def _overlap(rank):
    accounts = {}
    with Ledger() as ledger:
        for _ in range(3):
            dist.all_reduce(torch.ones(8))
    accounts["in turn"] = ledger.account()
    with Ledger() as ledger:
        for work in [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(3)]:
            work.wait()
    accounts["together"] = ledger.account()
    with Ledger() as ledger:  # rank 0 alone is later than the others
        if rank == 0:
            dist.send(torch.ones(1), 1)
        elif rank == 1:
            dist.recv(torch.ones(1), 0)
        dist.barrier()
    accounts["late"] = ledger.account()
    return accounts


def test_collectives_that_overlap_share_rounds(results):
    rounds = {
        name: over_all(results["_overlap"], name).rounds for name in ("in turn", "together", "late")
    }
    assert rounds == {"in turn": 3 * 6, "together": 6, "late": 1 + 2}


# --- DDP ------------------------------------------------------------------------------------------


def _model(rank):
    torch.manual_seed(rank)
    return torch.nn.Sequential(
        torch.nn.Linear(9, 17),
        torch.nn.Tanh(),
        torch.nn.Linear(17, 5),
        torch.nn.BatchNorm1d(5),
        torch.nn.Linear(5, 30),
    )


def _ddp(rank):
    """The same training of three ranks without a ledger, with one, and with a hook as well."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    group, by_way = dist.new_group((0, 1, 2)), {}
    if rank == 3:
        return by_way
    for way in ("without", "with", "hook"):
        ddp = torch.nn.parallel.DistributedDataParallel(
            _model(rank), bucket_cap_mb=200 / 2**20, process_group=group
        )
        if way == "with":
            with Ledger():
                # seen once before a hook is put on, which must still be possible below
                ddp(torch.ones(4, 9))
        if way == "hook":
            with Ledger() as ledger:
                ddp(torch.ones(4, 9)).sum().backward()
            ddp = torch.nn.parallel.DistributedDataParallel(
                _model(rank), bucket_cap_mb=200 / 2**20, process_group=group
            )
            ddp.register_comm_hook(group, allreduce_hook)
        elif way == "without":
            ddp(torch.ones(4, 9))
        torch.manual_seed(10 + rank)
        sizes, accounts = [], []
        for _ in range(3):
            ddp.zero_grad()
            x, ledger = torch.randn(4, 9), Ledger() if way != "without" else None
            with ledger or torch.enable_grad():
                ddp(x).square().sum().backward()
            if ledger:
                sizes.append([entry.numel for entry in ledger.entries if entry.call == "allreduce"])
                accounts.append(ledger.account())
        with Ledger() as ledger, ddp.no_sync():
            ddp(x).sum().backward()
        by_way[way] = {
            "gradients": [p.grad.tolist() for p in ddp.parameters()],
            "sizes": sizes,
            "accounts": accounts,
            "silent": ledger.count("allreduce"),
            "stops": all(entry.stop_s is not None for entry in ledger.entries),
        }
        del ddp
        gc.collect()
    return by_way


def test_ddp_is_seen_and_not_changed(results):
    for ways in results["_ddp"][:3]:
        assert ways["with"]["gradients"] == ways["without"]["gradients"], "to the last bit"
        assert ways["with"]["sizes"][1:] == ways["hook"]["sizes"][1:], (
            "what the hook shows is what is seen without it"
        )
        assert len(ways["with"]["sizes"][1]) > 1 and sum(ways["with"]["sizes"][1]) == sum(
            p.numel() for p in _model(0).parameters()
        )
        assert ways["with"]["silent"] == ways["hook"]["silent"] == 0


def test_buckets_of_one_backward_share_rounds(results):
    for way in ("with", "hook"):
        merged = merge([ways[way]["accounts"][2] for ways in results["_ddp"][:3]])
        rows, buckets = merged.by_call(), len(results["_ddp"][0][way]["sizes"][2])
        assert (
            rows["dist.allreduce"].rounds == 2 * 2
            and rows["dist.allreduce"].messages_sent == 3 * 4 * buckets
        )
        # BatchNorm's buffers, in the forward pass
        assert rows["dist.broadcast"].rounds == 2 and merged.rounds == 4 + 2


# --- strange cases --------------------------------------------------------------------------------


def _strange(rank):
    accounts = {}
    with Ledger() as ledger:
        if rank == 0:
            got = [torch.zeros(2) for _ in range(3)]
            accounts["sources"] = sorted(dist.recv(tensor) for tensor in got)
            dist.send(torch.ones(1), 1)
        else:
            dist.send(torch.full((2,), float(rank)), 0)
            if rank == 1:
                dist.recv(torch.ones(1), 0)
    accounts["any source"] = ledger.account()
    if rank == 3:
        dist.recv(torch.ones(5), 2)  # before its ledger is open
    with Ledger() as outer:
        if rank == 2:
            dist.send(torch.ones(5), 3)
        dist.barrier()
    accounts["outer"] = outer.account()
    with Ledger() as inner:
        work = dist.isend(torch.ones(1), (rank + 1) % N)
        dist.recv(torch.ones(1), (rank - 1) % N)
    work.wait()
    accounts["not waited for"] = inner.account()
    return accounts


def test_a_receive_from_any_source(results):
    assert results["_strange"][0]["sources"] == [1, 2, 3]
    merged = over_all(results["_strange"], "any source")
    assert (
        merged.rounds == 2
        and merged.ranks[0]["messages_received"] == 3
        and merged.ranks[0]["bytes_received"] == 24
    )


def test_accounts_that_do_not_fit_together(results):
    assert over_all(results["_strange"], "outer").rounds == 1 + 2
    assert merge([results["_strange"][1]["any source"]]).rounds >= 1, (
        "one rank's account alone will do"
    )
    assert merge([]).rounds == 0 and merge([]).table().splitlines()[-1].split()[0] == "all"
    assert over_all(results["_strange"], "not waited for").rounds == 1


def _nothing_left(rank):
    """What is there before, inside and after a block that raises."""

    def taps():
        return [
            name
            for name in ("allreduce_", "broadcast_", "send")
            if torch._C._dispatch_has_kernel_for_dispatch_key(f"c10d::{name}", "Autograd")
        ]

    before = dict(vars(dist.ProcessGroup)), dict(vars(dist.Work)), list(comm.observers), taps()
    with pytest.raises(KeyError), Ledger(), Ledger():
        inside = len(comm.observers), taps(), vars(dist.Work)["wait"] is not before[1]["wait"]
        raise KeyError
    after = dict(vars(dist.ProcessGroup)), dict(vars(dist.Work)), list(comm.observers), taps()
    same = [
        list(old) == list(new) and all(new[name] is old[name] for name in old)
        for old, new in zip(before[:2], after[:2], strict=True)
    ]
    return inside, same, after[2:], before[3]


def test_nothing_is_left_when_it_is_off(results):
    for traces in results["_nothing_left"]:
        assert traces == (
            (1, ["allreduce_", "broadcast_", "send"], True),
            [True, True],
            ([], []),
            [],
        )

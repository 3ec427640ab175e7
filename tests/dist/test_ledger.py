"""The ledger, on two processes.

It sees calls by whatever name, with sizes and ends, and leaves torch as it found it.
"""

import gc
import json

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

from manyhands.checks.ddp.diagnosis import cut  # noqa: E402
from manyhands.ledger import Ledger, median_steps  # noqa: E402


def _work(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    results = {
        experiment.__name__: experiment(rank) for experiment in (_calls, _ddp, _steps, _functional)
    }
    (folder / f"rank-{rank}").write_text(json.dumps(results))
    dist.barrier()
    gc.collect()  # DDP sits in a reference cycle: free it before its process group
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory, forkserver):
    """What the experiments below have reported on each rank.

    They share one start of the two processes.
    """
    folder = tmp_path_factory.mktemp("ledger")
    mp.start_processes(_work, args=(folder,), nprocs=2, start_method="forkserver")
    return [json.loads((folder / f"rank-{rank}").read_text()) for rank in (0, 1)]


def _calls(rank):
    from torch.distributed import all_reduce

    before = dict(vars(dist.ProcessGroup))
    with Ledger() as outer:
        all_reduce(torch.ones(3))
        with Ledger() as inner:
            dist.broadcast(torch.ones(2, dtype=torch.float64), 0)
            dist.all_gather([torch.zeros(5) for _ in range(2)], torch.ones(5))
            work = dist.all_reduce(torch.ones(7), async_op=True)
        work.wait()
        if rank == 0:
            dist.send(torch.ones(4), 1)
        else:
            dist.recv(torch.ones(4), 0)
    dist.all_reduce(torch.ones(1))
    return {
        "outer": [[e.call, e.numel, e.bytes] for e in outer.entries],
        "inner": [[e.call, e.numel] for e in inner.entries],
        "count": outer.count("allreduce"),
        "bytes": outer.bytes("allreduce"),
        "ended": [
            e.stop_s is not None and e.stop_s >= e.start_s
            for e in outer.entries
            if e.call == "allreduce"
        ],
        "as before": all(vars(dist.ProcessGroup)[name] is value for name, value in before.items()),
    }


def test_calls_sizes_and_ends(results):
    for rank, mine in enumerate(result["_calls"] for result in results):
        last = ["send", 4, 16] if rank == 0 else ["recv", 4, 16]
        assert mine["outer"] == [
            ["allreduce", 3, 12],
            ["broadcast", 2, 16],
            ["allgather", 5, 20],
            ["allreduce", 7, 28],
            last,
        ]
        assert mine["inner"] == [["broadcast", 2], ["allgather", 5], ["allreduce", 7]]
        assert (
            (mine["count"], mine["bytes"]) == (2, 40)
            and mine["ended"] == [True, True]
            and mine["as before"]
        )


def _ddp(rank):
    """All-reduces of the second step, in numbers, for several sizes of bucket.

    The rule of the lab for the same model comes with it.
    """
    from torch import nn
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    of_buckets = []
    for bucket_bytes in (1, 200, 1000, 3000, 10**9):
        model = nn.Sequential(
            nn.Linear(9, 17), nn.Tanh(), nn.Linear(17, 5), nn.Tanh(), nn.Linear(5, 30)
        )
        ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=bucket_bytes / 2**20)
        ddp.register_comm_hook(None, allreduce_hook)
        for _ in range(2):
            with Ledger() as ledger:
                ddp(torch.ones(4, 9)).sum().backward()
        sizes = {name: p.numel() * 4 for name, p in model.named_parameters()}
        ours = [
            sum(sizes[name] // 4 for name in bucket)
            for bucket in cut(list(sizes), sizes, bucket_bytes)
        ]
        of_buckets.append([[e.numel for e in ledger.entries if e.call == "allreduce"], ours])
    return of_buckets


def test_the_labs_rule_for_buckets_is_that_of_ddp(results):
    for cuts in (result["_ddp"] for result in results):
        assert len(cuts[0][0]) == 6 and len(cuts[-1][0]) == 1, (
            "the sizes go from a bucket for each parameter to one for all"
        )
        for theirs, ours in cuts:
            assert theirs == ours


def _steps(rank):
    model = torch.nn.Linear(50, 50)

    def average():
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)

    return median_steps(
        {"one": (lambda: model(torch.ones(8, 50)).sum(), average)}, warm_up=1, repeats=3
    )


def test_median_steps_gives_plain_numbers(results):
    for step in (result["_steps"]["one"] for result in results):
        (start, backward_ms, label), messages = step["compute"][0], step["network"]
        assert (
            start == 0
            and label == "backward"
            and [message[2] for message in messages] == ["0", "1"]
        )
        assert 0 < backward_ms <= messages[0][0] <= messages[0][1] <= messages[1][1]


def _functional(rank):
    """Functional collectives, DTensor's among them.

    They are beside what torch's own counter says and beside the ordinary calls.
    """
    import torch.distributed._functional_collectives as functional
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
    from torch.distributed.tensor.debug import CommDebugMode

    x, group, mesh, by_name = torch.ones(4, 6), dist.group.WORLD, init_device_mesh("cpu", (2,)), {}
    cut = distribute_tensor(torch.ones(4, 6), mesh, [Shard(0)])
    leaf = x.clone().requires_grad_()
    ways = {
        "all_reduce": lambda: functional.all_reduce(x, "sum", group) + 0,
        "all_gather": lambda: functional.all_gather_single(x, 0, group) + 0,
        "reduce_scatter": lambda: functional.reduce_scatter_single(x, "sum", 0, group) + 0,
        "all_to_all": lambda: (
            functional.all_to_all_single(
                x, [1, 3] if rank else [3, 1], [3, 1] if rank == 0 else [1, 3], group
            )
            + 0
        ),
        "coalesced": lambda: [
            reduced + 0 for reduced in functional.all_reduce_coalesced([x, x], "sum", group)
        ],
        "dtensor": lambda: cut.redistribute(mesh, [Replicate()]).to_local() + 0,
        "backward": lambda: (
            functional.wait_tensor(
                torch.ops._c10d_functional.all_reduce(leaf, "sum", group.group_name)
            )
            .sum()
            .backward()
        ),
    }
    for name, way in ways.items():
        with CommDebugMode() as theirs:
            way()
        with Ledger() as ledger:
            way()
        by_name[name] = [
            theirs.get_total_counts(),
            len(ledger.entries),
            ledger.bytes_sent,
            ledger.rounds,
            all(e.stop_s for e in ledger.entries),
        ]
    with Ledger() as plain:
        dist.all_reduce(x.clone())
    return {
        **by_name,
        "gradient": leaf.grad.unique().tolist(),
        "plain": [plain.bytes_sent, plain.rounds],
        "as before": type(torch.ops._c10d_functional.all_reduce).__name__,
    }


def test_functional_collectives_are_counted_as_torch_counts_them(results):
    size = 4 * 6 * 4
    for result in (result["_functional"] for result in results):
        expected = {
            "all_reduce": (1, size, 2),
            "all_gather": (1, size, 1),
            "reduce_scatter": (1, size // 2, 1),
            "coalesced": (1, 2 * size, 2),
            "dtensor": (1, size // 2, 1),
            "backward": (2, 2 * size, 4),
        }
        for name, (calls, sent, rounds) in expected.items():
            assert result[name] == [calls, calls, sent, rounds, True], name
        assert result["all_to_all"][:2] == [1, 1] and result["all_to_all"][2:] == [
            size // 4,
            1,
            True,
        ]
        assert (
            result["plain"] == [size, 2]
            and result["gradient"] == [4.0]
            and result["as before"] == "OpOverloadPacket"
        )

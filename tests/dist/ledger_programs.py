"""Twenty-four programs of torch.distributed, each made once and then run twice.

The first run is to get warm, the second to be counted.

Runs on the ranks. `PROGRAMS` is `{name: make}`; `make()` returns a function that does one step.
"""

import copy
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from manyhands.ledger import Ledger

warnings.filterwarnings("ignore")
N, WIDTH = 2**16, 256  # numbers in a tensor of the collectives; width of the networks


def world():
    return dist.get_rank(), dist.get_world_size()


def ones(n=N):
    return torch.ones(n)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


def backward(model, x=None):
    return lambda: model(torch.ones(8, WIDTH) if x is None else x).sum().backward()


def all_gather():
    _, p = world()
    return lambda: dist.all_gather([ones() for _ in range(p)], ones())


def gather():
    rank, p = world()
    return lambda: dist.gather(ones(), [ones() for _ in range(p)] if rank == 0 else None)


def scatter():
    rank, p = world()
    return lambda: dist.scatter(ones(), [ones() for _ in range(p)] if rank == 0 else None)


def ring():
    rank, p = world()

    def step():
        sent = dist.isend(ones(), (rank + 1) % p)
        dist.recv(ones(), (rank - 1) % p)
        sent.wait()

    return step


def all_to_all():
    _, p = world()
    return lambda: dist.all_to_all_single(ones(p * N // 4), ones(p * N // 4))


def ddp(hook=None, state=None, **options):
    def make():
        model = DistributedDataParallel(net(), **options)
        if hook:
            model.register_comm_hook(state() if state else None, hook)
        step = backward(model)
        step()  # buckets are built anew after the first
        return step

    return make


def power_sgd():
    return powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)


def no_sync():
    model = DistributedDataParallel(net())
    step = backward(model)
    step()

    def four():
        with model.no_sync():
            for _ in range(3):
                step()
        step()

    return four


def fsdp(**options):
    def make():
        model = net()
        for part in (model[0], model[2], model):
            fully_shard(part, **options)
        return backward(model)

    return make


def zero():
    model = DistributedDataParallel(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    step = backward(model)

    def whole():
        step()
        optimizer.step()
        optimizer.zero_grad()

    return whole


def tensor_parallel():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(net(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return backward(model, torch.ones(64, WIDTH, requires_grad=True))


def redistribute():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    cut = distribute_tensor(torch.ones(WIDTH, WIDTH), mesh, [Shard(0)])
    return lambda: DTensor.to_local(cut.redistribute(mesh, [Replicate()])) + 0


def pipeline(schedule):
    def make():
        rank, p = world()
        stage = PipelineStage(copy.deepcopy(net()), rank, p, torch.device("cpu"))
        run = schedule(
            stage, n_microbatches=p, loss_fn=lambda y, target: (y - target).square().sum()
        )

        def step():
            x, target = torch.ones(8 * p, WIDTH), torch.zeros(8 * p, WIDTH)
            run.step(
                *[x] if rank == 0 else [],
                **({"target": target, "losses": []} if rank == p - 1 else {}),
            )

        return step

    return make


GROUP = lambda: dist.group.WORLD  # noqa: E731
PROGRAMS = {
    "all_reduce": lambda: lambda: dist.all_reduce(ones()),
    "broadcast": lambda: lambda: dist.broadcast(ones(), 0),
    "reduce": lambda: lambda: dist.reduce(ones(), 0),
    "all_gather": all_gather,
    "all_gather_single": lambda: lambda: dist.all_gather_single(ones(4 * N), ones()),
    "reduce_scatter_single": lambda: lambda: dist.reduce_scatter_single(ones(), ones(4 * N)),
    "all_to_all_single": all_to_all,
    "gather": gather,
    "scatter": scatter,
    "ring of messages": ring,
    "functional all_reduce": lambda: lambda: functional.all_reduce(ones(), "sum", GROUP()) + 0,
    "functional all_gather": lambda: lambda: functional.all_gather_single(ones(), 0, GROUP()) + 0,
    "DDP": ddp(),
    "DDP, buckets of 100 kB": ddp(bucket_cap_mb=0.1),
    "DDP, no_sync": no_sync,
    "DDP, fp16 hook": ddp(default_hooks.fp16_compress_hook),
    "DDP, PowerSGD hook": ddp(powerSGD_hook.powerSGD_hook, power_sgd),
    "ZeroRedundancyOptimizer": zero,
    "FSDP2": fsdp(),
    "FSDP2, not resharded": fsdp(reshard_after_forward=False),
    "DTensor, column and row": tensor_parallel,
    "DTensor, redistribute": redistribute,
    "pipeline, GPipe": pipeline(ScheduleGPipe),
    "pipeline, 1F1B": pipeline(Schedule1F1B),
}
MADE = {}


def make(name):
    """Make the program and get it warm."""
    MADE[name] = PROGRAMS[name]()
    MADE[name]()


def counted(name):
    """What the ledger says of a program.

    It is ({call: bytes that this rank sent}, how many calls it noted, without messages received).
    """
    with Ledger() as ledger:
        MADE[name]()
    calls = [entry for entry in ledger.entries if entry.call != "recv"]
    return {call: row.bytes_sent for call, row in ledger.by_call().items()}, len(calls)


def seen_by_torch(name):
    """How many calls torch's own CommDebugMode sees."""
    with CommDebugMode() as mode:
        MADE[name]()
    return mode.get_total_counts()

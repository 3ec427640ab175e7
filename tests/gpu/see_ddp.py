"""DDP over one rank against plain training: the same weights, steps per second.

It also measures what the watch and the ledger add.
"""

import sys

import torch
from gpu_tell import failure, figure

from manyhands import Cluster


def trained(way, rounds=5, steps=40):
    """({name: ms of the median step}, the weights' sum) of three ways in turn.

    The ways are "plain", "ddp" and "ddp, ledger on".
    """
    import statistics
    import time
    from contextlib import nullcontext

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from manyhands.ledger import Ledger

    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(1)  # as a rank of a cluster has on CPUs
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    if not dist.is_initialized():
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=dist.HashStore(),
            rank=0,
            world_size=1,
        )
    width, rows = (2048, 512) if device.type == "cuda" else (256, 64)
    ways = {}
    for name in way:
        torch.manual_seed(0)
        parts = [
            layer for _ in range(6) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())
        ]
        model = torch.nn.Sequential(*parts).to(device)
        model = model if name == "plain" else DistributedDataParallel(model)
        ways[name] = model, torch.optim.SGD(model.parameters(), lr=0.1), []
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(1)).to(device)
    for _ in range(rounds):
        for name, (model, optimiser, times) in ways.items():
            with Ledger() if name.endswith("ledger on") else nullcontext():
                for _ in range(steps):
                    wait()
                    begun = time.perf_counter()
                    optimiser.zero_grad()
                    (model(x) - x).square().mean().backward()
                    optimiser.step()
                    wait()
                    times.append((time.perf_counter() - begun) * 1e3)
    sums = {
        name: sum(p.detach().double().abs().sum().item() for p in contestant[0].parameters())
        for name, contestant in ways.items()
    }
    return {name: statistics.median(contestant[2]) for name, contestant in ways.items()}, sums


def main():
    names = ["plain", "ddp", "ddp, ledger on"]
    alone, sums = trained(names)
    with Cluster(nodes=1, ranks_per_node=1, framework="torch", name="gpu") as cluster:
        figure("backend of the cluster", cluster.backend)
        ((watched, rank_sums),) = cluster.run(trained, names)
    for name in names:
        figure(f"{name}: steps a second", 1e3 / alone[name])
    figure("DDP adds to a step", 100 * (alone["ddp"] / alone["plain"] - 1), "%")
    figure(
        "the ledger adds to a step of DDP",
        100 * (alone["ddp, ledger on"] / alone["ddp"] - 1),
        "% (goal: 2 or less)",
    )
    figure(
        "the watch adds to a step of DDP",
        100 * (watched["ddp"] / alone["ddp"] - 1),
        "% (goal: 2 or less)",
    )
    if len({*sums.values(), *rank_sums.values()}) > 1:
        failure(
            "other weights",
            f"sums of |weights|: alone {sums}, on the rank of a cluster {rank_sums}",
        )
        return 1
    figure("the weights are the same", "yes")
    torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

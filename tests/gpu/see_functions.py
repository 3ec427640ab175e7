"""manyhands.functions over gloo between two ranks, against the same messages by hand.

Tensors are on the course's device.
"""

import sys

from gpu_tell import figure

from manyhands import Cluster


def timed(sizes, times):
    """{(call, bytes): (ms of ours, ms by hand)} on this rank.

    They are medians of one forward and backward.
    """
    import os
    import statistics
    import time

    import torch
    import torch.distributed as dist

    from manyhands import comm, functions

    device = torch.device(os.environ["MANYHANDS_DEVICE"])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    rank, ms_of = dist.get_rank(), {}
    other = 1 - rank
    with comm.create_communicator("gloo") as c:

        def ours_message(x):
            if rank == 0:
                functions.send(x, c, 1).backward()
            else:
                functions.recv(c, 0, delegate_variable=None).backward(torch.ones_like(x))

        def hand_message(x):
            here = torch.empty(x.shape)  # gloo's messages take the CPU's tensors only
            if rank == 0:
                dist.send(x.detach().cpu(), other)
                dist.recv(here, other)
                here.to(device)
            else:
                dist.recv(here, other)
                dist.send(torch.ones_like(here.to(device)).cpu(), other)

        def ours_sum(x):
            functions.allreduce(c, x).backward(torch.ones_like(x))

        def hand_sum(x):
            total, gradient = x.detach().clone(), torch.ones_like(x)
            dist.all_reduce(total)
            dist.all_reduce(gradient)

        for call, ways in {
            "send, recv": (ours_message, hand_message),
            "allreduce": (ours_sum, hand_sum),
        }.items():
            for size in sizes:
                x, taken = torch.ones(size // 4, device=device, requires_grad=True), ([], [])
                for _ in range(times):
                    for way, times_of_way in zip(ways, taken, strict=True):
                        x.grad = None
                        dist.barrier()
                        begun = time.perf_counter()
                        way(x)
                        if device.type == "cuda":
                            torch.cuda.synchronize()
                        times_of_way.append((time.perf_counter() - begun) * 1e3)
                ms_of[call, size] = tuple(map(statistics.median, taken))
    return ms_of


def main():
    with Cluster(nodes=1, ranks_per_node=2, framework="torch", name="gpu") as cluster:
        of_ranks = cluster.run(timed, [2**10, 2**20, 2**24], 20)
    for call, size in of_ranks[0]:
        ours, hand = (max(ms_of[call, size][way] for ms_of in of_ranks) for way in (0, 1))
        figure(f"{call}, {size // 2**10} KiB: ours, by hand", f"{ours:.3g}, {hand:.3g}", "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""manyhands.functions with CUDA tensors: the same values and gradients as on the CPU.

`make test-gpu`.
"""

import pytest

from manyhands import Cluster
from manyhands.cluster.host.gpu_assignment import gpu_ids

pytestmark = pytest.mark.gpu


def all_functions(backend):
    """Values and gradients of every function, for small and large messages.

    Returns the largest difference between the CPU and the rank's GPU.
    """
    import os

    import torch

    from manyhands import comm, functions

    def run(c, device, n):
        torch.manual_seed(c.rank)
        x = torch.randn(n).to(device).requires_grad_()
        xs = [torch.randn(n + r).to(device).requires_grad_() for r in range(c.size)]
        phi = functions.send(x, c, (c.rank + 1) % c.size)
        received = functions.recv(c, (c.rank - 1) % c.size, delegate_variable=phi)
        gathered = functions.gather(c, x, root=1)
        results = [
            received,
            functions.bcast(c, x, root=1),
            functions.scatter(c, xs, root=0),
            *functions.allgather(c, x),
            *functions.alltoall(c, xs),
            functions.allreduce(c, x),
            *(gathered if c.rank == 1 else [gathered]),
        ]
        assert {result.device.type for result in results} == {device.type}
        sum(((i + 1) * result.sin()).sum() for i, result in enumerate(results)).backward()
        return [
            t.detach().cpu()
            for t in [*results, x.grad, *(item.grad for item in xs if item.grad is not None)]
        ]

    device = torch.device(os.environ["MANYHANDS_DEVICE"])
    with comm.create_communicator(backend) as c:
        return max(
            (a - b).abs().max().item()
            for n in (5, 100_000)
            for a, b in zip(run(c, torch.device("cpu"), n), run(c, device, n), strict=True)
        )


def test_four_ranks_on_the_gpus_there_are_with_gloo():
    with Cluster(nodes=1, ranks_per_node=4, framework="torch", name="gpu") as cluster:
        assert max(cluster.run(all_functions, "gloo")) < 1e-4


def test_a_gpu_for_each_rank_with_nccl():
    n = len(gpu_ids())
    if n < 2:
        pytest.skip("needs two GPUs")
    with Cluster(nodes=1, ranks_per_node=n, framework="torch", name="gpu") as cluster:
        assert max(cluster.run(all_functions, "nccl")) < 1e-4

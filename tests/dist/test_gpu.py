"""What needs a GPU: `make test-gpu`. Skipped, in CI too, where there is none."""

from pathlib import Path

import pytest

from manyhands import Cluster
from manyhands.authoring.validate import Validation
from manyhands.cluster.host.gpu_assignment import gpu_ids

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.gpu


def sum_of_ranks():
    import os

    import torch
    import torch.distributed as dist

    device = torch.device(os.environ["MANYHANDS_DEVICE"])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
    x = torch.full((1000,), dist.get_rank() + 1.0, device=device)
    dist.all_reduce(x)
    return str(device), dist.get_backend(), x.max().item()


def test_four_ranks_share_the_gpus_there_are():
    with Cluster(nodes=2, ranks_per_node=2, name="gpu") as cluster:
        expected = "nccl" if len(gpu_ids()) >= 4 else "gloo"
        assert cluster.backend == expected
        results = cluster.run(sum_of_ranks)
        assert [(backend, total) for _, backend, total in results] == [(expected, 10.0)] * 4
        assert all(device.startswith("cuda:") for device, _, _ in results)


def test_one_rank_on_each_gpu_uses_nccl():
    n = len(gpu_ids())
    with Cluster(nodes=1, ranks_per_node=n, name="gpu") as cluster:
        assert cluster.backend == "nccl"
        assert [total for _, _, total in cluster.run(sum_of_ranks)] == [n * (n + 1) / 2] * n


def test_a_hang_on_gpus_is_seen_and_healed():
    with Cluster(nodes=1, ranks_per_node=2, name="gpu") as cluster:
        cluster.run(sum_of_ranks)
        with pytest.raises(Exception) as caught:
            cluster.px(
                "import torch.distributed as dist, torch, os\nx = torch.ones(4, "
                "device=os.environ['MANYHANDS_DEVICE'])\nif dist.get_rank() == 0:\n   "
                " dist.all_reduce(x)\n    print(x.sum().item())",
                patience_s=3,
            )
        assert caught.value.kind in ("hang", "mismatch")
        assert [total for _, _, total in cluster.run(sum_of_ranks)] == [3.0] * 2


@pytest.mark.parametrize("notebook", ["00_preflight", "06_ddp"])
def test_the_notebook_gives_the_stored_outputs(notebook):
    path = ROOT / "notebooks" / f"{notebook}.ipynb"
    with Validation([path]) as validation:
        verdict = validation.of(path)
    assert verdict.passed, verdict.text

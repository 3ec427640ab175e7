"""What each Python of a visit does first, for `tests/gpu` is on its path.

Two things wait until their module is imported.

* A PyTorch older than 2.13 gets the names that 2.13 gave to some collectives, for the same
  functions.
* With GPU_BACKEND=nccl all ranks of a cluster get the first GPU and NCCL, which 2.30 and later
  allow as an experiment.
"""

import importlib.abc
import importlib.util
import os
import sys

NEW_NAMES = {
    "torch.distributed": {
        "all_gather_single": "all_gather_into_tensor",
        "reduce_scatter_single": "reduce_scatter_tensor",
    },
    "torch.distributed._functional_collectives": {
        "all_gather_single_autograd": "all_gather_tensor_autograd",
        "reduce_scatter_single_autograd": "reduce_scatter_tensor_autograd",
    },
}


def older_torch(module):
    for new, old in NEW_NAMES[module.__name__].items():
        if not hasattr(module, new) and hasattr(module, old):
            setattr(module, new, getattr(module, old))


def one_gpu_for_all(module):
    environment = {
        "CUDA_VISIBLE_DEVICES": "0",
        "MANYHANDS_DEVICE": "cuda:0",
        "NCCL_MULTI_RANK_GPU_ENABLE": "1",
    }
    module.assign_devices = lambda nodes, ranks_per_node, gpus=None: (
        "nccl",
        [environment] * (nodes * ranks_per_node),
    )


AFTER = dict.fromkeys(NEW_NAMES, older_torch)
if os.environ.get("GPU_BACKEND") == "nccl":
    AFTER["manyhands.cluster.host.gpu_assignment"] = one_gpu_for_all


class Finder(importlib.abc.MetaPathFinder):
    """Finds these modules as all others do, and has `AFTER` run once they are executed."""

    def find_spec(self, name, path=None, target=None):
        if name not in AFTER:
            return None
        after = AFTER.pop(name)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            after(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())

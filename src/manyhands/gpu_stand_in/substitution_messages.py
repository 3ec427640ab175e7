"""The phrases for what the stand-in for GPUs takes the place of, and the sentence that has them."""

from collections.abc import Iterable

DEVICES = "device cuda is the CPU"
FOUND = "torch.cuda.is_available() returns True"
STREAMS = "streams and events of CUDA follow the CPU's order"
GRAPHS = "CUDA graphs record kernels of a GPU, which a CPU cannot replace"
NCCL = "backend nccl is gloo"
MESH = "a mesh of GPUs is a mesh of CPUs"
IDS = "device_ids of DDP are ignored"
SYNC = "SyncBatchNorm computes on the CPU, with the same collectives forward and backward"
AUTOCAST = "autocast is the CPU's, with the same type"
SCALER = "GradScaler scales gradients on the CPU"
COMPILE = "torch.compile does not change the function"


def describe_substitutions(substituted: Iterable[str]) -> str:
    """Say in a sentence for a page or a terminal what was substituted in a run.

    `substituted` has the phrases of its `report`.
    """
    return (
        "There is no GPU here. A stand-in took the place of GPUs, so that the script takes the "
        f"same branches as with GPUs: {'; '.join(substituted)}. --as-it-is switches it off."
    )

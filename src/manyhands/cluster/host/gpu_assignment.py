"""Which device each rank computes on.

GPUs are shared out by local rank; without a GPU, the ranks use CPU threads.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

# the environment variables that name a rank's device
DEVICE_VARIABLES = "MANYHANDS_DEVICE", "CUDA_VISIBLE_DEVICES"


@functools.lru_cache(maxsize=1)
def gpu_ids() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES would name them.

    No framework is imported for it.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [part for part in visible.split(",") if part.strip() and part.strip() != "-1"]
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [
        str(i)
        for i, line in enumerate(
            line for line in listed.stdout.splitlines() if line.startswith("GPU ")
        )
    ]


def assign_devices(
    nodes: int, ranks_per_node: int, gpus: list[str] | None = None
) -> tuple[str, list[dict[str, str]]]:
    """Assign devices to the ranks and return (backend, [environment of each rank]).

    Every node gets its own GPUs, and every rank one of them, by its local rank. NCCL refuses two
    ranks on one GPU, so the backend is "nccl" only if each rank has a GPU of its own, else "gloo".
    """
    gpus = gpu_ids() if gpus is None else gpus
    if not gpus:
        return "gloo", [{"MANYHANDS_DEVICE": "cpu"}] * (nodes * ranks_per_node)
    per_node = max(1, len(gpus) // nodes)
    environments = []
    for rank in range(nodes * ranks_per_node):
        node, local_rank = divmod(rank, ranks_per_node)
        mine = [gpus[(node * per_node + k) % len(gpus)] for k in range(min(per_node, len(gpus)))]
        environments.append(
            {
                "CUDA_VISIBLE_DEVICES": ",".join(mine),
                "MANYHANDS_DEVICE": f"cuda:{local_rank % len(mine)}",
            }
        )
    alone = nodes * ranks_per_node <= len(gpus) and ranks_per_node <= per_node
    return ("nccl" if alone else "gloo"), environments

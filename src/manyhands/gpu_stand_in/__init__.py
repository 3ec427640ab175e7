"""A stand-in for GPUs for scripts on a machine without one: device `cuda` is the CPU.

It is put in place before a script starts.

    from manyhands import gpu_stand_in
    gpu_stand_in.install(gpus=2, index=0, report="used-0.json")

The script then takes the branch that it will take on GPUs. What it sees:

* `torch.cuda.is_available()` says yes, and `torch.cuda.device_count()` is the number of ranks on
  this machine.
* A device keeps the name that the script gave it: `torch.device("cuda", 0).type` is "cuda". From
  the first move to a GPU on, each tensor says the same (`x.device`, `x.is_cuda`), the few that
  would still be on the CPU included.
* PyTorch itself goes on seeing the CPU: whatever calls from inside of `torch` gets PyTorch's own
  answer. So torch works as it does without a GPU, and only what names a GPU is translated
  (`cuda_devices`, `cuda_module`, `precision`, `groups`).
* A move between CPU and GPU copies, as it does there. Numbers drawn on the GPU come from a
  generator of its own seed; dropout draws from the CPU's generator.

What was substituted is written to `report`, each phrase when it is first used. Only a process that
runs one script installs the stand-in: nothing is put back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.gpu_stand_in.stand_in_state import INDEX, REPORT, USED

if TYPE_CHECKING:
    import torch


def install(gpus: int, index: int = 0, report: str | None = None) -> bool:
    """Put the stand-in in place, with so many GPUs, unless there is a real one.

    Returns whether it is in place.
    """
    import torch

    if INDEX["gpus"] or torch.cuda.is_available():
        return bool(INDEX["gpus"])
    from manyhands.gpu_stand_in import cuda_devices, cuda_module, groups, precision

    INDEX["gpus"] = gpus
    if report:
        REPORT["path"] = report
    cuda_devices.install()
    cuda_module.install()
    precision.install()
    groups.install()
    return True


def is_active() -> bool:
    """Whether the stand-in is in place in this process."""
    return bool(INDEX["gpus"])


def is_refused_by_nccl(tensor: torch.Tensor) -> bool:
    """Whether a script that asks for NCCL has made this tensor on the CPU.

    It is so as far as the stand-in knows.
    """
    if not is_active():
        return False
    from manyhands.gpu_stand_in import cuda_devices
    from manyhands.gpu_stand_in.substitution_messages import NCCL

    return NCCL in USED and cuda_devices.made_on_cpu(tensor)


def work_alone() -> None:
    """From now on no other rank answers: SyncBatchNorm takes the rows of this process."""
    if is_active():
        from manyhands.gpu_stand_in import groups

        groups.ALONE.append(True)

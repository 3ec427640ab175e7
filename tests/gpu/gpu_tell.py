"""How an item reports what it found: a line of JSON for each.

It is written immediately, so that an item that is stopped has reported what it had.
"""

import ctypes
import json
import os
import sys

from gpu_plan import NOTHING


def _write(**fact):
    with open(os.environ["GPU_TOLD"], "a") as file:
        file.write(json.dumps(fact) + "\n")


def figure(name, value, unit=""):
    """A number with its unit, or a word."""
    value = float(f"{value:.4g}") if isinstance(value, float) else value
    print(f"{name}: {value} {unit}", flush=True)
    _write(figure=name, value=value, unit=unit)


def failure(name, text):
    """What went wrong, with the whole text of it."""
    print(f"FAILED: {name}\n{text}", flush=True)
    _write(failure=name, text=text)


# from this NCCL on, ranks may share a GPU, as an experiment: NCCL_MULTI_RANK_GPU_ENABLE=1
SHARED = 2, 30


def needs_shared_nccl():
    """Without a GPU, or with an NCCL that refuses two ranks on one: say it, and end.

    The NCCL is the one that is loaded: LD_PRELOAD brings a newer one under a PyTorch that has an
    older one.
    """
    import torch

    if not torch.cuda.is_available():
        lacking("NCCL needs a GPU, and there is none.")
    number = ctypes.c_int()
    ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(number))
    loaded = number.value // 10_000, number.value // 100 % 100
    figure("NCCL that is loaded", ".".join(map(str, loaded)))
    if loaded < SHARED:
        lacking(
            f"NCCL {loaded} refuses two ranks on one GPU: it takes {'.'.join(map(str, SHARED))} or "
            "later."
        )


def lacking(why):
    """This machine lacks something: say it, and end."""
    print(why, flush=True)
    sys.exit(NOTHING)

"""What is run on a machine with a GPU, in order of worth."""

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TUTORIALS = ("00", "06", "04", "11", "01", "05", "12", "13", "17")
LABS = ("06", "04", "11", "00", "01", "03", "05", "09", "12", "13", "17", "14", "15", "16")
LATER = ("14", "15", "16")
OVER_NCCL = ("06", "04", "15", "16", "11", "01", "12", "13", "00", "05", "17")
LIMIT_S = 420  # of the longest item: less than the 8 minutes of a run


@dataclass(frozen=True)
class Item:
    """`command` is run in the course's folder for `limit_s` seconds at most.

    It exits with 0 where all went well, with `NOTHING` where this machine lacks what it needs, and
    says why in its last line.
    """

    name: str
    what: str
    command: tuple
    limit_s: float


NOTHING = 77


def _python(script, *arguments):
    return (sys.executable, str(HERE / script), *arguments)


ITEMS = [
    Item(
        "machine",
        "the GPU, the driver, the versions; what `manyhands doctor` says",
        _python("see_machine.py"),
        60,
    ),
    Item(
        "gpu-tests",
        "four ranks on one GPU over gloo; one rank with NCCL; a hang with CUDA tensors is seen and "
        "healed; functions give the CPU's values and gradients",
        _python("see_tests.py"),
        180,
    ),
    Item(
        "tutorials",
        "tutorials on the course's device: every output that is not measured equals the stored one",
        _python("see_notebooks.py", "notebooks", *TUTORIALS),
        LIMIT_S,
    ),
    Item(
        "labs",
        "solutions of the PyTorch labs on the course's device: full points, as stored",
        _python("see_notebooks.py", "solutions", *LABS),
        LIMIT_S,
    ),
    Item(
        "ddp",
        "DDP over one rank against plain training; what the watch and the ledger add to a step",
        _python("see_ddp.py"),
        120,
    ),
    Item(
        "functions",
        "manyhands.functions over gloo, tensors on the device: time against messages by hand",
        _python("see_functions.py"),
        120,
    ),
    Item(
        "efficientnet",
        "EfficientNet-B2, 260 x 260, batch 64, made images: images a second, peak memory; 0, 4, 12 "
        "workers",
        _python("see_efficientnet.py"),
        240,
    ),
    Item(
        "dataparallel",
        "nn.DataParallel with one device; the phases of unit 03 by the GPU's clock",
        _python("see_dataparallel.py"),
        60,
    ),
    Item(
        "two-ranks",
        "ranks with NCCL on one GPU: the rehearsal's programs against what it says of them",
        _python("see_two_ranks.py"),
        300,
    ),
    Item(
        "later-units",
        "the units on pipelines, tensor parallelism and sharded states",
        _python("see_notebooks.py", "notebooks", *LATER),
        LIMIT_S,
    ),
    Item(
        "tutorials-nccl",
        "tutorials whose ranks share the GPU and talk over NCCL: outputs as stored",
        _python("see_notebooks.py", "--nccl", "notebooks", *OVER_NCCL),
        LIMIT_S,
    ),
    Item(
        "labs-nccl",
        "solutions whose ranks share the GPU and talk over NCCL: full points",
        _python("see_notebooks.py", "--nccl", "solutions", *OVER_NCCL),
        LIMIT_S,
    ),
]

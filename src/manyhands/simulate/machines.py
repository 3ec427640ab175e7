"""Machines of the past and of today, by published numbers: `machines.toml`, with the sources.

    dgx = named("dgx-h100")
    step(dgx.machine, layers(networks.resnet(50), 32, dgx.flops_per_s * 0.3), Way(data=1024))
"""

import tomllib
from collections import namedtuple
from importlib.resources import files

from manyhands.simulate.training_step import Machine

# machine: a `training_step.Machine`; flops_per_s: the peak of one GPU, float operations a second; memory_bytes: its own
Kind = namedtuple("Kind", "name what machine flops_per_s arithmetic memory_bytes source")


def names():
    """The names of all machines."""
    return list(_table())


def named(name, reached=1.0):
    """The `Kind` of this name. `reached`: the part of the links' published rates that messages reach, above 0 to 1.

    ValueError for a name that is not there.
    """
    table = _table()
    if name not in table:
        raise ValueError(f"There is no machine {name!r}; there are {', '.join(table)}")
    if not 0 < reached <= 1:
        raise ValueError(f"reached is {reached}: a part of the published rate, above 0 and up to 1")
    one = table[name]
    inside, between = ((one[link]["latency_s"], one[link]["bytes_per_s"] * reached) for link in ("inside", "between"))
    return Kind(name, one["what"], Machine(one["gpus"], inside, between, one["links"]), one["flops_per_s"],
                one["arithmetic"], one["memory_bytes"], one["source"])


def _table():
    return tomllib.loads(files("manyhands.simulate").joinpath("machines.toml").read_text(encoding="utf-8"))

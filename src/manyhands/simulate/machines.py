"""Machines of the past and of today, by published numbers: `machines.toml`, with the sources.

dgx = named("dgx-h100")
step(dgx.machine, layers(networks.resnet(50), 32, dgx.flops_per_s * 0.3), Way(data=1024))
"""

from __future__ import annotations

import math
from importlib.resources import files
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from manyhands.simulate import placement
from manyhands.simulate.training_step import Machine
from manyhands.toml import TOMLDecodeError, loads


class Kind(NamedTuple):
    """A machine that is known by name.

    `machine` is a `training_step.Machine`; `flops_per_s` is the peak of one GPU in float operations
    a second, and `memory_bytes` its memory.
    """

    name: str
    what: str
    machine: Machine
    flops_per_s: float
    arithmetic: str
    memory_bytes: float
    source: str


KEYS = (
    "what",
    "gpus",
    "links",
    "inside",
    "between",
    "inside_shared_by",
    "adds",
    "torus",
    "flops_per_s",
    "arithmetic",
    "memory_bytes",
    "source",
)

MOST = 1_000_000  # GPUs of a node, links and so on in a file

UNITS = {
    "latency_s": "seconds, up to 0.1: 10 microseconds are 10e-6",
    "bytes_per_s": "bytes per second, from 1e6 up: 100 Gbit/s are 12.5e9",
    "flops_per_s": "operations per second, from 1e6 up: 312 TFLOP/s are 312e12",
    "memory_bytes": "bytes, from 1e6 up: 80 GB are 80e9",
}


def names() -> list[str]:
    """The names of all machines."""
    return list(_table())


def named(name: str, reached: float = 1.0) -> Kind:
    """The `Kind` of this name.

    `reached`: the part of the links' published rates that messages reach, above 0 to 1.

    ValueError for a name that does not exist.
    """
    table = _table()
    if name not in table:
        raise ValueError(
            f"There is no machine {name!r}; there are {', '.join(table)}, and files, such as "
            "my.toml"
        )
    return _kind(name, table[name], reached)


def from_file(path: str | Path, reached: float = 1.0) -> Kind:
    """The `Kind` that a TOML file describes with the keys of `machines.toml`.

    They are at its top or in one table.

    Only `gpus` and `between` are needed; a machine with one GPU a node needs no `inside`, and 1 is
    the default for `links`. ValueError, with the key, where something is missing or is not a number
    that makes sense; OSError where the file cannot be read.
    """
    path = Path(path)
    try:
        table = loads(path.read_text(encoding="utf-8"))
    except (TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ValueError(f"{path} is not TOML: {problem}") from None
    name = path.stem
    if (
        table
        and not {"gpus", "between"} & set(table)
        and all(isinstance(value, dict) for value in table.values())
    ):
        if len(table) > 1:
            raise ValueError(
                f"{path} describes {len(table)} machines: {', '.join(table)}; it must be one"
            )
        ((name, table),) = table.items()
    whole = {"links": 1, **table}
    if whole.get("gpus") == 1:
        whole.setdefault("inside", whole.get("between"))
    for key in ("gpus", "links", "inside_shared_by", "torus"):
        if key in (*whole, "gpus") and (
            type(whole.get(key)) is not int or not 1 <= whole[key] <= MOST
        ):
            raise ValueError(f"{path}: `{key}` must be a whole number from 1 up, as in `{key} = 8`")
    for link in ("between", "inside"):
        _check_link(path, link, whole.get(link))
    if whole.get("adds", "") not in placement.ADDS:
        raise ValueError(f"{path}: `adds` must be one of {', '.join(map(repr, placement.ADDS))}")
    for key in ("flops_per_s", "memory_bytes"):
        if key in whole and not _is_number(whole[key], 1e6):
            raise ValueError(f"{path}: `{key}` is {whole[key]!r}; it must be {UNITS[key]}")
    for key in ("what", "arithmetic", "source"):
        if key in whole and not isinstance(whole[key], str):
            raise ValueError(f"{path}: `{key}` is {whole[key]!r}; it must be text in quotes")
    if unknown := sorted(set(whole) - set(KEYS)):
        raise ValueError(f"{path}: there is no key `{unknown[0]}`; there are {', '.join(KEYS)}")
    return _kind(name, {**dict.fromkeys(KEYS), "what": name, **whole}, reached)


def _check_link(path: Path, name: str, link: Any) -> None:
    """Refuse a link without its two numbers, or with numbers that cannot be meant.

    Such numbers cannot have the units that the keys name.
    """
    if not isinstance(link, dict) or set(link) != {"latency_s", "bytes_per_s"}:
        raise ValueError(
            f"{path}: `{name}` must be a link with seconds and bytes per second, as in "
            f"`{name} = {{ latency_s = 10e-6, bytes_per_s = 12.5e9 }}`"
        )
    for key, low, high in (("latency_s", 0, 0.1), ("bytes_per_s", 1e6, 1e15)):
        if not (_is_number(link[key], low) and link[key] <= high):
            raise ValueError(f"{path}: `{name}.{key}` is {link[key]!r}; it must be {UNITS[key]}")


def _is_number(value: Any, least: float) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= least


def _kind(name: str, entry: dict[str, Any], reached: float) -> Kind:
    if not isinstance(reached, Real) or not 0 < reached <= 1:
        raise ValueError(
            f"reached is {reached!r}: a part of the published rate, above 0 and up to 1"
        )
    inside, between = (
        (entry[link]["latency_s"], entry[link]["bytes_per_s"] * reached)
        for link in ("inside", "between")
    )
    machine = Machine(
        entry["gpus"],
        inside,
        between,
        entry["links"],
        entry.get("inside_shared_by") or 1,
        entry.get("adds") or "",
        entry.get("torus") or 0,
    )
    return Kind(
        name,
        entry["what"],
        machine,
        entry["flops_per_s"],
        entry["arithmetic"],
        entry["memory_bytes"],
        entry["source"],
    )


def _table() -> dict[str, Any]:
    return loads(files("manyhands.simulate").joinpath("machines.toml").read_text(encoding="utf-8"))

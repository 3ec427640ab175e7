"""What a cluster is given: arguments, environment, this machine.

What cannot work is reported in a sentence before anything starts.
"""

from __future__ import annotations

import os
import sys
from numbers import Real
from typing import TYPE_CHECKING

from manyhands.machine import processors
from manyhands.shared.default_timeouts import HANG_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, TypeAlias

    Ranks: TypeAlias = int | Iterable[int]  # one rank, or several
    Framework: TypeAlias = Literal["torch", "tensorflow", "both"]
    Profile: TypeAlias = Literal["local", "emulated", "mpi", "slurm", "ssh", "containers"]

RANKS_PER_CORE = 16  # more would only be slow; MANYHANDS_MAX_RANKS lifts the limit
FRAMEWORKS = {
    "torch": ["torch"],
    "tensorflow": ["tensorflow"],
    "both": ["torch", "tensorflow"],
    None: [],
}
PROFILES = ("local", "emulated", "mpi", "slurm", "ssh", "containers")
LARGEST_RANK = 999_999  # that anybody may name
# that a process may have to open: rank 0 had 72 + 4 for each rank, with three process groups
FILES, FILES_PER_RANK = 128, 4


def check_seconds(name: str, value: float | None) -> float | None:
    """`value`, a number above 0 (infinity is one), or None."""
    return None if value is None else check_positive(name, value)


def check_positive(name: str, value: float) -> float:
    """Return `value` as a float; raise ValueError unless it is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:
        raise ValueError(SENTENCES["not above 0"].format(name=name, given=value))
    return float(value)


def read_setting(name: str, default: float) -> float:
    """The number above 0 in the environment variable `name`, or `default`."""
    text = os.environ.get(name) or default
    try:
        return check_positive(name, float(text))
    except ValueError:
        raise ValueError(
            SENTENCES["not above 0"].format(name=f"the environment variable {name}", given=text)
        ) from None


def hang_timeouts(patience_s: float | None) -> dict[str, float]:
    """After how many seconds waiting ranks count as a hang, by backend.

    It is the argument, else MANYHANDS_PATIENCE_S, else the default.
    """
    patience_s = check_seconds("patience_s", patience_s)
    return {
        backend: patience_s or read_setting("MANYHANDS_PATIENCE_S", usual)
        for backend, usual in HANG_TIMEOUT_S.items()
    }


def check_ranks(ranks: Ranks, world_size: int) -> list[int]:
    """`ranks`, one or several, as a sorted list without doubles."""
    if isinstance(ranks, str) or not (isinstance(ranks, int) or hasattr(ranks, "__iter__")):
        raise ValueError(SENTENCES["not ranks"].format(given=ranks, last=world_size - 1))
    checked = set()
    # until the first wrong one, because a caller may ask for a million
    for rank in [ranks] if isinstance(ranks, int) else ranks:
        if not isinstance(rank, int) or not 0 <= rank < world_size:
            raise ValueError(SENTENCES["no such rank"].format(wrong=rank, last=world_size - 1))
        checked.add(rank)
    if not checked:
        raise ValueError(SENTENCES["not ranks"].format(given=ranks, last=world_size - 1))
    return sorted(checked)


def check_shape(
    nodes: int,
    ranks_per_node: int,
    framework: str | None,
    profile: str,
    threads_per_rank: int,
    memory_mib: int | None,
) -> None:
    """Raise ValueError, in a sentence, for a cluster that this machine cannot hold."""
    if framework not in list(FRAMEWORKS):
        raise ValueError(SENTENCES["framework"].format(given=framework))
    if profile not in PROFILES:
        raise ValueError(SENTENCES["profile"].format(given=profile))
    for value in (nodes, ranks_per_node, threads_per_rank, 1 if memory_mib is None else memory_mib):
        if not isinstance(value, int) or value < 1:
            raise ValueError(SENTENCES["not whole"].format(given=value))
    if profile not in ("local", "emulated", "mpi"):
        return
    cores, asked = processors(), nodes * ranks_per_node
    most = read_setting("MANYHANDS_MAX_RANKS", RANKS_PER_CORE * cores)
    if asked > most:
        raise ValueError(SENTENCES["too many"].format(asked=asked, cores=cores, most=most))


def check_python(world_size: int) -> None:
    """Raise RuntimeError where the processes of a cluster would end in an error of foreign code.

    They are this process and those that it starts.
    """
    if sys.flags.optimize > 1 or os.environ.get("PYTHONOPTIMIZE", "0") not in ("", "0", "1"):
        raise RuntimeError(SENTENCES["optimized"])
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:  # not on Windows
        return
    allowed, needed = getrlimit(RLIMIT_NOFILE)[0], FILES + FILES_PER_RANK * world_size
    if 0 <= allowed < needed:  # below 0: no limit
        raise RuntimeError(
            SENTENCES["open files"].format(allowed=allowed, needed=needed, n=world_size)
        )


SENTENCES = {
    "not above 0": "{name} must be a number above 0, not {given!r}.",
    "not ranks": "ranks={given!r} names no rank. Give a rank or a list of ranks, from 0 to {last}.",
    "no such rank": "There is no rank {wrong}; the ranks go from 0 to {last}.",
    "framework": 'framework={given!r} is not known. Use "torch", "tensorflow", "both" or None.',
    "profile": (
        'profile={given!r} is not known. Use "local", "emulated", "mpi", "slurm", '
        '"ssh" or "containers" (argument, or MANYHANDS_PROFILE).'
    ),
    "not whole": (
        "nodes, ranks_per_node, threads_per_rank and memory_mib must be whole numbers from 1 up, "
        "not {given!r}."
    ),
    "too many": (
        "{asked} ranks on {cores} core(s) would only wait for each other. At most {most:g} ranks "
        'start here: lower nodes or ranks_per_node, use a larger machine (profile="slurm"), or '
        "raise the environment variable MANYHANDS_MAX_RANKS."
    ),
    "optimized": (
        "Python runs without docstrings here (PYTHONOPTIMIZE=2, or python -OO), but ipyparallel and"
        " the frameworks need theirs. Unset PYTHONOPTIMIZE and restart Jupyter."
    ),
    "open files": (
        "A process may have only {allowed} files open here, and a cluster of {n} ranks needs up to "
        "{needed}. Run `ulimit -n {needed}`, or a higher number, in the shell before you start "
        "Jupyter there. If this is refused, ask the administrator."
    ),
}

"""Checks of the numbers that the simulator is given.

Each check returns the number, or raises a ValueError whose sentence names the field, shows what was
given, and says what belongs there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
# of numbers that may also be arrays: the result is of the same kind
N = TypeVar("N", float, "NDArray[Any]")
T = TypeVar("T")
MOST_RANKS = 10_000_000  # of one simulated step: each is a place of several arrays


def check_whole(field: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """`value` as an int, if it is a whole number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{field} is {value!r}: it must be a whole number from {least} up")
    if most is not None and int(value) > most:
        raise ValueError(f"{field} is {value:,}: it must be at most {most:,}")
    return int(value)


def check_real(
    field: str, value: float, above: float | None = None, unit: str = "", finite: bool = True
) -> float:
    """`value`, if it is a number of 0 or more, or of more than `above`.

    Infinity is allowed only if it need not be `finite`.
    """
    fits = (
        isinstance(value, Real)
        and not isinstance(value, (bool, np.bool_))
        and not math.isnan(value)
    )
    if (
        not fits
        or (finite and math.isinf(value))
        or (value < 0 if above is None else value <= above)
    ):
        wanted = "0 or more" if above is None else f"more than {above:g}"
        raise ValueError(f"{field} is {value!r}: it must be a number of {wanted}{unit}")
    return value


def check_link(field: str, value: Any) -> Sequence[float]:
    """`value`, if it is a pair of a latency in seconds and a bandwidth in bytes per second."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{field} is {value!r}: it must be a pair (latency_s, bytes_per_s)")
    check_real(f"The latency of {field}", value[0], unit=" seconds")
    check_real(
        f"The bandwidth of {field}", value[1], above=0, unit=" bytes per second", finite=False
    )
    return value


def check_fields(field: str, value: T, kind: Any) -> T:
    """`value`, if it has the fields of the namedtuple `kind`."""
    if not all(hasattr(value, name) for name in kind._fields):
        raise ValueError(
            f"{field} is {type(value).__name__} and must be a {kind.__name__}"
            f"({', '.join(kind._fields)})"
        )
    return value

"""The values of a finding as text for its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.clinic import clinic_messages
from manyhands.clinic.clinic_limits import SHOWN_NAMES
from manyhands.cluster.faults.fault_messages import ranks_text

if TYPE_CHECKING:
    from manyhands.clinic.visit import Visit


def format_values(values: dict[str, Any], visit: Visit | None = None) -> dict[str, Any]:
    """The values as text for the sentences."""
    as_text = dict(values)
    if visit:
        as_text.update(
            n=values.get("n", visit.ranks),
            steps=len(visit.seen[0]["steps"]) if 0 in visit.seen else 0,
        )
    if "ranks" in values:
        as_text["ranks_n"] = values["ranks"]
        if isinstance(values["ranks"], list):
            as_text["ranks"] = ranks_text(values["ranks"])
    if "names" in values:
        names = values["names"]
        as_text.update(
            names=", ".join(names[:SHOWN_NAMES]) + (", ..." if len(names) > SHOWN_NAMES else ""),
            k=len(names),
        )
    for name in ("share", "apart", "part"):
        if name in values:
            as_text["percent"] = format_percent(values[name])
    for name in ("least", "most"):
        if name in values:
            as_text[name] = format_percent(values[name])
    for name, digits in (
        ("shares", 3),
        ("norms", 3),
        ("rates", 3),
        ("losses", 3),
        ("factors", 3),
        ("values", 6),
    ):
        if name in values:
            as_text[name] = ", ".join(f"{number:.{digits}g}" for number in values[name])
    for name in ("reported", "first", "seeds", "lengths"):
        if name in values:
            as_text[name] = ", ".join(map(str, values[name]))
    as_text["place"] = clinic_messages.PLACES.get(values.get("place", ""), "")
    as_text["data_parallel"] = (
        " nn.DataParallel does not communicate with other processes."
        if values.get("wrapper") == "DataParallel"
        else ""
    )
    return as_text


def format_percent(part: float) -> str:
    """Write a part of 1 as text in percent."""
    if part == float("inf") or part > 100:
        return "more than 100 times"
    return f"{part:.0%}" if part >= 0.095 else f"{part:.1%}" if part >= 0.00095 else f"{part:.1e}"

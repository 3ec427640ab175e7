"""The units of the course that treat what was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.clinic.conclude import Statement


def units_of(statements: Iterable[Statement]) -> list[tuple[str, str, str]]:
    """[(number, title, why)] in the order of the units; the units that treat what was found."""
    from importlib.resources import files

    from manyhands import toml

    units = toml.loads((files("manyhands") / "units.toml").read_text(encoding="utf-8"))["unit"]
    titles = {unit["name"][:2]: unit["title"] for unit in units}
    why: dict[str, list[str]] = {}
    for statement in statements:
        for number in statement.units:
            why.setdefault(number, []).append(statement.title or statement.key)
    return [
        (number, titles[number], ", ".join(dict.fromkeys(why[number]))) for number in sorted(why)
    ]

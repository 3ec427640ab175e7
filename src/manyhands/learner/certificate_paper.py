"""A certificate: a page of PDF with a name and the units of a path.

It has the points of each unit, and the day of the last grade.

The same certificate gives the same bytes. Behind the page stands, as a comment of PDF, what it says
in short; a signature (`manyhands.shared.signing`) covers both.
"""

from __future__ import annotations

import importlib.util
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fpdf import FPDF

    from manyhands.units import Unit

MARK = b"%manyhands-certificate "
PATH_TITLES = {"one_day": "One day", "two_days": "Two days", "three_days": "Three days"}
LONGEST_NAME = 60
OWN = "Points as graded on the learner's own machine. This certificate is not signed."
SIGNED = "Points as graded by the instructor, who has signed this file. To verify it:"
BRIEF = {
    "name": str,
    "path": str,
    "day": str,
    "units": int,
    "points": (int, float),
    "max": (int, float),
}
VERIFY = "manyhands certificate --verify FILE"


class NoCertificateError(ValueError):
    """There is nothing to certify; the message says what is missing and what to do."""


@dataclass(frozen=True)
class Certificate:
    """What a certificate says.

    `units`: (number, title, points, max) of each; `day`: of the last grade, 2026-11-25.
    """

    name: str
    path: str  # of PATH_TITLES
    units: tuple[tuple[str, str, float, float], ...]
    day: str
    by_instructor: bool = False

    @property
    def points(self) -> float:
        """The points of all units together."""
        return sum(points for *_, points, _ in self.units)

    @property
    def max(self) -> float:
        """The most points that all units together can give."""
        return sum(most for *_, most in self.units)

    @property
    def brief(self) -> dict[str, Any]:
        """Return what the certificate says in short, which its comment of PDF holds."""
        return {
            "name": self.name,
            "path": PATH_TITLES[self.path],
            "points": self.points,
            "max": self.max,
            "day": self.day,
            "units": len(self.units),
        }


def make_certificate(
    name: str,
    path: str,
    units: Sequence[Unit],
    grades: Mapping[str, dict[str, Any]],
    by_instructor: bool = False,
) -> Certificate:
    """Make the certificate of the path's units (`Unit`s that are there).

    `grades` is {unit's name: {"points", "max", "when"}}. Raises `NoCertificateError` where a unit
    was never graded.
    """
    name = " ".join(name.split())
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise NoCertificateError(f"A name has 1 to {LONGEST_NAME} letters. Give it with --name.")
    missing = [unit for unit in units if not graded(grades.get(unit.name))]
    if missing or not units:
        which = (
            ", ".join(f"{unit.number} {unit.title}" for unit in missing)
            or "the path has no unit yet"
        )
        raise NoCertificateError(
            "There is no certificate, because points that were never graded are not certified. Not "
            f"graded: {which}."
        )
    rows = tuple(
        (unit.number, unit.title, grades[unit.name]["points"], grades[unit.name]["max"])
        for unit in units
    )
    return Certificate(
        name, path, rows, max(grades[unit.name]["when"] for unit in units)[:10], by_instructor
    )


def graded(grade: Any) -> bool:
    """Whether this is what a grading has left: points out of a maximum, and a time."""
    try:
        datetime.fromisoformat(grade["when"])
        return 0 <= grade["points"] <= grade["max"] and grade["max"] > 0
    except (TypeError, KeyError, ValueError):
        return False


def render_pdf(certificate: Certificate) -> bytes:
    """The bytes of the page, and behind it what it says in short."""
    from fpdf import FPDF

    paper = FPDF(format="A4")
    paper.set_creation_date(datetime.fromisoformat(certificate.day).replace(tzinfo=timezone.utc))
    paper.set_title(f"manyhands: {certificate.name}")
    paper.set_lang("en")
    for style, file in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf")):
        paper.add_font("text", style, _inside("matplotlib", f"mpl-data/fonts/ttf/{file}"))
    paper.add_font("japanese", fname=_inside("matplotlib_fontja", "fonts/ipaexg.ttf"))
    paper.set_fallback_fonts(["japanese"], exact_match=False)
    paper.set_auto_page_break(False)
    paper.add_page()
    _head(paper, certificate)
    _table(paper, certificate)
    _foot(paper, certificate)
    brief = json.dumps(certificate.brief, sort_keys=True, ensure_ascii=False).encode()
    return bytes(paper.output()).rstrip() + b"\n" + MARK + b64encode(brief) + b"\n"


def brief_of(data: bytes) -> dict[str, Any] | None:
    """What a certificate says in short, or None where these bytes are none."""
    line = data.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        brief = (
            json.loads(b64decode(line.removeprefix(MARK), validate=True))
            if line.startswith(MARK)
            else None
        )
    except (ValueError, RecursionError):
        return None
    whole = isinstance(brief, dict) and all(
        _fits(brief.get(key), kind) for key, kind in BRIEF.items()
    )
    return brief if whole else None


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value of a certificate can be shown as what it claims to be.

    The certificate may come from anybody.
    """
    if kind is str:
        return isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_NAME
    return isinstance(value, kind) and not isinstance(value, bool) and abs(value) < 1e9


def _line(paper: FPDF, size: float, text: str, style: str = "", space: float = 1.5) -> None:
    paper.set_font("text", style, size)
    paper.multi_cell(0, size * 0.35 * space, text, align="C", new_x="LMARGIN", new_y="NEXT")


def _head(paper: FPDF, certificate: Certificate) -> None:
    paper.set_draw_color(15, 47, 82)
    paper.set_line_width(1)
    paper.rect(8, 8, 194, 281)
    paper.set_y(30)
    _line(paper, 12, "manyhands: distributed training of neural networks, hands on")
    _line(paper, 26, "Certificate", "B", 2.5)
    _line(paper, 20, certificate.name, "B", 2)
    _line(
        paper,
        11,
        f"has earned {certificate.points:g} of {certificate.max:g} points "
        f"in the labs of the path “{PATH_TITLES[certificate.path]}”.",
        space=2,
    )


def _table(paper: FPDF, certificate: Certificate) -> None:
    paper.set_y(105)
    paper.set_line_width(0.2)
    height = min(8, 130 / len(certificate.units))
    for number, title, points, most in certificate.units:
        paper.set_font("text", "", 10)
        paper.set_x(35)
        paper.cell(12, height, number, border="B")
        paper.cell(98, height, title, border="B")
        paper.cell(
            30,
            height,
            f"{points:g} of {most:g}",
            border="B",
            align="R",
            new_x="LMARGIN",
            new_y="NEXT",
        )


def _foot(paper: FPDF, certificate: Certificate) -> None:
    paper.set_y(252)
    _line(paper, 11, certificate.day, space=2)
    _line(paper, 8, SIGNED if certificate.by_instructor else OWN)
    if certificate.by_instructor:
        _line(paper, 8, VERIFY)


def _inside(package: str, name: str) -> Path:
    """The path of a file of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent / name

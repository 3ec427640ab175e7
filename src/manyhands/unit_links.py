"""The cells of links that the build puts into each tutorial and lab.

They hold the badges that open the notebook in Colab and Kaggle, and say where its lab, its
tutorial, the next unit and the slides are, as `units.toml`, the sources and the repository's
address say. Nobody writes them by hand, and `manyhands adopt` leaves them out.

The same cells have other links in the learner's `work/`, where the neighbours are the learner's own
copies, and in `hosted/`, whose notebooks are opened without the rest of the clone, so that their
links lead to the repository.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import relpath
from typing import TYPE_CHECKING

from manyhands import repository
from manyhands.units import units

if TYPE_CHECKING:
    from manyhands.units import Unit

HEAD, FOOT = "unit-links-head", "unit-links-foot"  # the ids of these cells
LAB, TUTORIAL = "labs", "tutorial"  # the kinds of notebooks
OPENS = "Start_Here (`make lab` opens it)"
# pictures of our own, so that no page asks another host for one
BADGES = "docs/images/open-in-{place}.svg"


def cells(
    root: Path, name: str, kind: str, own: bool = False, hosted: bool = False
) -> dict[str, str]:
    """Return {cell id: Markdown} for the notebook of the unit `name` (NN_topic).

    `kind` is `TUTORIAL` or `LAB`; `own`: as it is in `work/`; `hosted`: as it is in `hosted/`. A
    lab begins with the link to its tutorial. A cell without text is left out.
    """
    course, address = units(root), repository.address(root)
    place = _Place(name, kind, own, address if hosted else "")
    foot = [*_partner(place), *_next(place, course), *_deck(place, root), _start(place)]
    follows = f"This lab follows [its tutorial]({place.tutorial(name)})." if kind == LAB else ""
    head = "\n\n".join(filter(None, [follows, "" if own or hosted else _badges(place, address)]))
    return {FOOT: "**Where to go on:** " + " · ".join(foot)} | ({HEAD: head} if head else {})


def hosted_path(name: str, kind: str) -> str:
    """Where in the clone the copy of a notebook is that Colab and Kaggle open."""
    return f"hosted/{name}_{'lab' if kind == LAB else 'tutorial'}.ipynb"


class _Place:
    """Where a notebook is, and what its links look like from there."""

    def __init__(self, name: str, kind: str, own: bool, address: str) -> None:
        self.name, self.kind, self.own, self.address = name, kind, own, address
        top = "work" if own else "notebooks" if kind == TUTORIAL else "labs"
        self.folder = top if kind == TUTORIAL else f"{top}/{name}"

    def link(self, path: str) -> str:
        """A path inside the clone as seen from here."""
        return (
            repository.file_page(self.address, path) if self.address else relpath(path, self.folder)
        )

    def tutorial(self, name: str) -> str:
        return self.link(f"work/{name}_tutorial.ipynb" if self.own else f"notebooks/{name}.ipynb")

    def lab(self, name: str) -> str:
        return self.link(f"{'work' if self.own else 'labs'}/{name}/{name}.ipynb")


def without_badges(text: str) -> str:
    """Return the text of a cell at the head of a notebook, without its badges.

    A lab of a class is handed in where it is.
    """
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith("[![Open in "))


def _badges(place: _Place, address: str) -> str:
    """Return two pictures that open the hosted copy, or nothing.

    They need a repository that Colab and Kaggle can read.
    """
    path = hosted_path(place.name, place.kind)
    opens = {
        "Colab": repository.opens_in_colab(address, path),
        "Kaggle": repository.opens_in_kaggle(address, path),
    }
    return " ".join(
        f"[![Open in {name}]({place.link(BADGES.format(place=name.lower()))})]({link})"
        for name, link in opens.items()
        if link
    )


def _partner(place: _Place) -> list[str]:
    """A tutorial's lab; a lab's points."""
    if place.kind == TUTORIAL:
        return [f"[the lab of this unit]({place.lab(place.name)})"]
    return (
        [] if place.address else [f"your points: `manyhands check {place.name[:2]}` in a terminal"]
    )


def _next(place: _Place, course: Sequence[Unit]) -> list[str]:
    """The next unit that is there, behind those that are coming."""
    names = [unit.name for unit in course]
    links = []
    for unit in course[names.index(place.name) + 1 :] if place.name in names else ():
        label = f"{unit.number} {unit.title}"
        links.append(
            f"{label} (coming)" if unit.coming else f"[{label}]({place.tutorial(unit.name)})"
        )
        if not unit.coming:
            break
    return [f"next unit: {', '.join(links)}"] if links else []


def _deck(place: _Place, root: Path) -> list[str]:
    """The slides, where the deck has a source or is built."""
    built = f"slides/built/{place.name}.pdf"
    there = (root / "slides" / f"{place.name}.md").is_file() or (root / built).is_file()
    return [f"[slides]({place.link(built)})"] if there else []


def _start(place: _Place) -> str:
    """The page that lists all units."""
    if place.address:
        return f"[all units]({place.link('README.md')}#units)"
    return f"[Start_Here]({place.link('work/Start_Here.md')})" if place.own else OPENS

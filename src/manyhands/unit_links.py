"""The cells of links that the build puts into each tutorial and lab: where its lab, its tutorial, the next unit and the
slides are, as `units.toml` and the sources say. Nobody writes them by hand, and `manyhands adopt` leaves them out.

The same cell has other links in the learner's `work/`: there the neighbours are the learner's own copies.
"""

from posixpath import relpath

from manyhands.units import units

HEAD, FOOT = "unit-links-head", "unit-links-foot"  # the ids of these cells
LAB, TUTORIAL = "labs", "tutorial"  # the kinds of notebooks
OPENS = "Start_Here (`make lab` opens it)"


def cells(root, name, kind, own=False):
    """{cell id: Markdown} for the notebook of the unit `name` (NN_topic), of kind `TUTORIAL` or `LAB`; `own`: as it
    lies in `work/`. A lab begins with the link to its tutorial."""
    course = units(root)
    place = _Place(name, kind, own)
    foot = [*_partner(place, course), *_next(place, course), *_deck(place, root),
            f"[Start_Here]({place.link('work/Start_Here.md')})" if own else OPENS]
    made = {FOOT: "**Where to go on:** " + " · ".join(foot)}
    if kind == LAB:
        made[HEAD] = f"This lab follows [its tutorial]({place.tutorial(name)})."
    return made


class _Place:
    """Where a notebook lies, and how its links look from there."""

    def __init__(self, name, kind, own):
        self.name, self.kind, self.own = name, kind, own
        top = "work" if own else "notebooks" if kind == TUTORIAL else "labs"
        self.folder = top if kind == TUTORIAL else f"{top}/{name}"

    def link(self, path):
        """A path inside the clone as seen from here."""
        return relpath(path, self.folder)

    def tutorial(self, name):
        return self.link(f"work/{name}_tutorial.ipynb" if self.own else f"notebooks/{name}.ipynb")

    def lab(self, name):
        return self.link(f"{'work' if self.own else 'labs'}/{name}/{name}.ipynb")


def _partner(place, course):
    """A tutorial's lab; a lab's points."""
    if place.kind == TUTORIAL:
        return [f"[the lab of this unit]({place.lab(place.name)})"]
    return [f"your points: `manyhands check {place.name[:2]}` in a terminal"]


def _next(place, course):
    """The next unit that is there, behind those that are coming."""
    names = [unit.name for unit in course]
    found = []
    for unit in course[names.index(place.name) + 1:] if place.name in names else ():
        label = f"{unit.number} {unit.title}"
        found.append(f"{label} (coming)" if unit.coming else f"[{label}]({place.tutorial(unit.name)})")
        if not unit.coming:
            break
    return [f"next unit: {', '.join(found)}"] if found else []


def _deck(place, root):
    """The slides, where the deck has a source or is built."""
    built = f"slides/built/{place.name}.pdf"
    there = (root / "slides" / f"{place.name}.md").is_file() or (root / built).is_file()
    return [f"[slides]({place.link(built)})"] if there else []

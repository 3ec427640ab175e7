"""A cell keeps its id when its text is edited.

So links to it survive, and a diff shows only the edit.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from manyhands import unit_links

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from nbformat import NotebookNode

SIMILAR = 0.5  # the part of two texts that must agree for one to count as an edit of the other


def keep(notebook: NotebookNode, stored: NotebookNode) -> None:
    """Give the cells of a newly built notebook the ids that they have in the stored one.

    An edited cell takes the id of its earlier text. Answers, checks and cells of links have ids of
    their own, which stay. In each place where the two notebooks differ, a new text takes the id of
    the most similar old text of the same type.
    """
    named = {unit_links.HEAD, unit_links.FOOT}
    new = [
        cell for cell in notebook.cells if "nbgrader" not in cell.metadata and cell.id not in named
    ]
    old = [
        cell
        for cell in stored.cells
        if "nbgrader" not in cell.metadata and cell.get("id") and cell.id not in named
    ]
    texts = [[(cell.cell_type, cell.source) for cell in cells] for cells in (old, new)]
    ids: dict[int, str] = {}
    for kind, a, b, c, d in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        if kind == "equal":
            ids |= {c + step: old[a + step].id for step in range(b - a)}
        elif kind == "replace":
            ids |= {
                place: old[earlier].id for place, earlier in _edits(texts, range(a, b), range(c, d))
            }
    taken = {cell.id for cell in notebook.cells if all(cell is not fresh for fresh in new)} | set(
        ids.values()
    )
    for place, cell in enumerate(new):
        cell.id = ids.get(place) or _unused(cell.id, taken)
        taken.add(cell.id)


def _edits(
    texts: Sequence[Sequence[tuple[str, str]]], earlier: Sequence[int], later: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Pairs (new place, old place) of similar texts, the most similar pair first.

    Each place occurs once.
    """
    old, new = texts
    pairs = sorted(
        (
            (SequenceMatcher(None, old[a][1], new[c][1], autojunk=False).ratio(), -a, -c)
            for a in earlier
            for c in later
            if old[a][0] == new[c][0]
        ),
        reverse=True,
    )
    done: set[tuple[str, int]] = set()
    for ratio, a, c in pairs:
        if ratio >= SIMILAR and not {("old", a), ("new", c)} & done:
            done |= {("old", a), ("new", c)}
            yield -c, -a


def _unused(name: str, taken: Container[str]) -> str:
    """A new cell's id; with a number behind it where an edited cell has kept the same one."""
    number, unused = 1, name
    while unused in taken:
        number += 1
        unused = f"{name}-{number}"
    return unused

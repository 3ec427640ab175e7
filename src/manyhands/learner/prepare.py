"""What is made ready before JupyterLab opens: the learner's copies and the start page."""

from collections.abc import Collection, Iterable
from pathlib import Path

from manyhands.learner import start_page
from manyhands.learner.copies import copy_course, number_of


def prepare(root: str | Path, new: Collection[str] = (), fetched: Collection[str] = ()) -> None:
    """Make the copies and the page, and tell what was done.

    `new`: numbers of units whose new versions are asked for; `fetched`: see `copy_course`.
    """
    copied = copy_course(root, new, fetched)
    if copied.made:
        print(
            f"Your own copies in work/ are made: {len(copied.made)} files of the units "
            f"{', '.join(_numbers(copied.made))}."
        )
    for name in copied.beside:
        print(f"A clean copy is next to yours: work/{name}")
    for number in _numbers(copied.newer):
        print(
            f"Unit {number} has a newer version. Your copies in work/ are not changed.\n  To get "
            f"the new one next to them: manyhands lab --new {number}"
        )
    start_page.write(root)


def _numbers(names: Iterable[str]) -> list[str]:
    return sorted({number_of(name) for name in names if number_of(name)})

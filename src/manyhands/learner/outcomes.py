"""What the runs of the tutorials gave: `notebooks/outcomes.json`, {name of a question: outcome}.

`settle` notes each outcome while a notebook is built, and the build keeps them. Nothing runs on the
web site, so it settles its readers' predictions with these.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from manyhands.learner.questions import questions

if TYPE_CHECKING:
    from manyhands.learner.questions import Question

FILE = "notebooks/outcomes.json"
# names the file that the kernel of a build writes, a line for each outcome
NOTES = "MANYHANDS_OUTCOMES"


Outcome = str | float  # one of the choices, or a number
T = TypeVar("T")


def note(name: str, value: Outcome) -> None:
    """Note an outcome for the build, if a build is running."""
    if path := os.environ.get(NOTES):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({name: value}) + "\n")


def noted(path: str | Path) -> dict[str, Outcome]:
    """{name: outcome} of a file that `note` has written; empty if there is none."""
    if not Path(path).is_file():
        return {}
    noted_outcomes: dict[str, Outcome] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        noted_outcomes = (
            json.loads(line) | noted_outcomes
        )  # the first outcome stays, as it does for a learner
    return noted_outcomes


def read(root: str | Path) -> dict[str, Outcome]:
    """{name: outcome} of all tutorials.

    ValueError if the file cannot be read; empty if it does not exist.
    """
    path = Path(root) / FILE
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{FILE} is not JSON: {error}") from None
    if not isinstance(stored, dict):
        raise ValueError(f"{FILE} must contain one object, from names of questions to outcomes")
    return stored


def of(values: dict[str, T], number: str) -> dict[str, T]:
    """The outcomes of unit `number`."""
    return {name: value for name, value in values.items() if name.startswith(f"{number}-")}


def text_with(root: str | Path, number: str, new: dict[str, Outcome]) -> str:
    """The text of the file once unit `number` has given `found`.

    A measured number that the question would accept for the new one stays, so that a rebuild
    changes nothing without need.
    """
    old, asked = read(root), questions(Path(root) / "notebooks")
    merged = {name: value for name, value in old.items() if name not in of(old, number)}
    for name, value in new.items():
        merged[name] = (
            old[name] if name in old and accepts(asked.get(name), old[name], value) else value
        )
    lines = [
        f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(merged.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def accepts(question: Question | None, old: Any, new: Any) -> bool:
    """Whether `old` is the question's right answer if the run gives `new`."""
    try:
        return question is not None and question.right(question.outcome(old), new)
    except (ValueError, TypeError):
        return False


def wanting(root: str | Path, number: str) -> list[str]:
    """List the questions of unit `number` without an outcome that answers them, by name."""
    stored = read(root)
    return [
        name
        for name, question in of(questions(Path(root) / "notebooks"), number).items()
        if not (name in stored and accepts(question, stored[name], stored[name]))
    ]

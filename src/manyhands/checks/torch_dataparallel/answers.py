"""What an experiment of unit 03's checks returns (`*with_torch`), and `verdicts` judges."""

from __future__ import annotations

from typing import Any, TypedDict


class Case(TypedDict):
    """One question and its answer, as nestings of numbers and words (see `verdicts.case`)."""

    got: Any
    right: Any
    looks: str | None
    facts: dict[str, Any]

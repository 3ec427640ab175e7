"""What an experiment of unit 03's checks (`*with_torch`) returns, for `diagnosis` to judge."""

from __future__ import annotations

from typing import Any, TypedDict


class Case(TypedDict):
    """One question and its answer, as nestings of numbers and words (see `diagnosis.case`)."""

    got: Any
    right: Any
    looks: str | None
    facts: dict[str, Any]

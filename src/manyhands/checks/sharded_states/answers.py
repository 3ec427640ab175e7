"""What the ranks answer in the experiments of unit 16's checks, and `diagnosis` judges."""

from __future__ import annotations

from typing import Any, TypedDict


class Finding(TypedDict):
    """What a rank has found.

    `looks`: the mistake that the answer looks like, or None. `values` prove the answer, `at` says
    where it was given, and `words` are for the mistake's text.
    """

    rank: int
    at: str
    looks: str | None
    values: list[Any]
    expected: Any
    got: Any
    words: dict[str, Any]


Findings = dict[str, list[Finding]]  # {criterion: what the rank has found}

"""What the ranks answer to unit 00's check of `exchange` (`ranks`)."""

from __future__ import annotations

from typing import TypedDict


class RingAnswer(TypedDict):
    """One exchange in a ring. `got` is a text if it was no tensor as the one that was given."""

    got: list[int] | str
    changed: bool
    sends: int
    receives: int
    others: int
    bytes: int

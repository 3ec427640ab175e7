"""What the ranks answer in the experiments of unit 04's checks (`ranks`).

`diagnosis` judges it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from manyhands.ledger.account import Account


class Call(TypedDict):
    """A call on one rank of a group, where `me` is its number in the group."""

    members: tuple[int, ...]
    me: int
    p: int
    dtype: str
    numel: int
    itemsize: int


class Counted(TypedDict):
    """What the ledger counts of a call, and the names of the library's collectives in it."""

    account: Account
    library: list[str]


class Comparison(TypedDict, total=False):
    """A value against the right one. `looks`: the mistake whose result it equals, or "other".

    `bad` and `elsewhere` are chunks, namely one that is wrong and one whose sum or place it has.
    """

    right: bool
    looks: str
    sample: list[float]
    wanted: list[float]
    bad: int
    elsewhere: int


class More(Comparison, total=False):
    """What a case has in addition to its call, each of it only in some experiments."""

    account: Account
    library: list[str]
    root: int
    way: str


class Case(Call, More, total=False):
    """One call of the learner's function, or of a way, and its result."""


# None: not asked; a text: no number
Prediction = TypedDict(
    "Prediction",
    {"bytes": int, "predicted bytes": float | str | None, "predicted rounds": float | str | None},
)


class Asked(Prediction):
    """What the learner predicts of a way in a world."""

    way: str
    p: int


class CostCase(Case, Prediction):
    """What the learner predicts of a way in a group, and what the ledger counts there."""


class Costs(TypedDict):
    """What a rank answers: the cases of its groups, and predictions for large worlds."""

    cases: list[CostCase]
    large: list[Asked]

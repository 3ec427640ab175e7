"""How unit 03's checks judge an answer, and which mistakes they recognise, without a framework."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from manyhands.checks.torch_dataparallel.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from manyhands.checks.report import Problem
    from manyhands.checks.torch_dataparallel.answers import Case

ATOL = 1e-9


def flat(value: Any) -> list[Any]:
    """Return a nesting of lists, however deep, as one list of numbers and words."""
    return (
        [leaf for item in value for leaf in flat(item)]
        if isinstance(value, (list, tuple))
        else [value]
    )


def near(got: Any, right: Any) -> bool:
    """Whether two nestings of numbers and words are the same, with numbers to ATOL."""
    got, right = flat(got), flat(right)
    return len(got) == len(right) and all(_same(*pair) for pair in zip(got, right, strict=True))


def _same(a: Any, b: Any) -> bool:
    numbers = [isinstance(value, Real) and not isinstance(value, bool) for value in (a, b)]
    return abs(a - b) <= ATOL * (1 + abs(b)) if all(numbers) else type(a) is type(b) and a == b


def shape_of(value: Any, kinds: Collection[str] = ("list", "tuple", "dict")) -> Any:
    """Return a reported nesting without the names of its containers' types."""
    if isinstance(value, list):
        return [shape_of(item, kinds) for item in value]
    return "container" if value in kinds else value


def case(
    got: Any, right: Any, wrong: dict[str, Any] | Iterable[tuple[str, Any]] = (), **facts: Any
) -> Case:
    """Return one question and its answer.

    `wrong` are pairs (or a dict) of a mistake's name and what it would give. `looks` is the first
    one that fits, "types" if only the types of containers differ, "other" if nothing fits, and None
    if the answer is right. `facts` are for the message of the mistake, and `expected` and `shown`
    among them replace right and got in what the learner sees.
    """
    looks = None
    if not near(got, right):
        pairs = wrong.items() if isinstance(wrong, dict) else wrong
        looks = next(
            (name.strip() for name, value in pairs if near(got, value)),
            "types" if near(shape_of(got), shape_of(right)) else "other",
        )
    return {"got": got, "right": right, "looks": looks, "facts": facts}


def problem(report: str, criterion: str, case: Case) -> Problem | None:
    """Return None if the case is right, and otherwise the details of a FAIL line."""
    if case["looks"] is None:
        return None
    facts = case["facts"]
    keys = [
        (report, criterion, case["looks"], facts.get("kind")),
        (report, criterion, case["looks"]),
        (report, criterion, "other"),
    ]
    message = next(MISTAKES[key] for key in keys if key in MISTAKES)
    numbers: Problem = (
        {"expected": facts["expected"], "got": facts["shown"]} if "expected" in facts else {}
    )
    return {"mistake": message.format(**facts), **numbers}


def describe_error(name: str, error: BaseException) -> str:
    """Return a learner's exception in a line, with the remedy if it is a known one."""
    text = " from ".join(
        f"{type(cause).__name__}: {' '.join(str(cause).split())[:200]}"
        for cause in (error, error.__cause__)
        if cause
    )
    known = next(
        (remedy for fragment, remedy in MISTAKES["known"].items() if fragment in text), None
    )
    return MISTAKES["raised"].format(name=name, error=text) + (f"\n{known}" if known else "")

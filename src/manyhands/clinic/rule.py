"""What a rule of the clinic gives: findings.

A rule that raises an exception has decided nothing.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar


class Finding(NamedTuple):
    """A key of `clinic_messages.MISTAKES` or REMARKS, and what its sentence is filled with."""

    key: str
    values: dict[str, Any]


Judged = TypeVar("Judged")  # an `Evidence`, or what a group of ranks has seen
# the key of what could not be decided, because a rule has raised an exception
NOT_JUDGED = "not judged"


def rule(judge: Callable[[Judged], list[Finding]]) -> Callable[[Judged], list[Finding]]:
    """A rule that raises an exception has decided nothing, and the others still count."""

    @functools.wraps(judge)
    def guarded(evidence: Judged) -> list[Finding]:
        try:
            return judge(evidence)
        except Exception as error:  # noqa: BLE001 - a rule that fails must not hide the others' findings
            return [not_judged(judge.__name__, error)]

    return guarded


def not_judged(what: str, error: Exception) -> Finding:
    """Make the finding that `what`, a rule or a question, raised this error."""
    return Finding(
        NOT_JUDGED, {"what": what.strip("_"), "error": f"{type(error).__name__}: {error}"[:300]}
    )

"""What a rule of the clinic gives: findings; a rule that raises an exception has decided nothing."""

import functools
from collections import namedtuple

Finding = namedtuple("Finding", "key values")
NOT_JUDGED = "not judged"  # the key of what could not be decided, because a rule has raised an exception


def rule(judge):
    """A rule that raises an exception has decided nothing, and the others still count."""
    @functools.wraps(judge)
    def guarded(evidence):
        try:
            return judge(evidence)
        except Exception as error:  # noqa: BLE001 - a rule that fails must not hide the others' findings
            return [not_judged(judge.__name__, error)]
    return guarded


def not_judged(what, error):
    return Finding(NOT_JUDGED, {"what": what.strip("_"), "error": f"{type(error).__name__}: {error}"[:300]})

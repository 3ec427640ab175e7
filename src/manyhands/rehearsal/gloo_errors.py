"""What gloo says when the other side is lost or when it refuses or ends a rank, as patterns."""

import re

GONE = re.compile("closed by peer|reset by peer|Broken pipe")
TIMED_OUT = re.compile("[Tt]imed out")
REFUSED = re.compile(r"\[enforce fail at \S*gloo\S*\]\s*(.*)")  # in an error that gloo raises
# in the output of a rank that gloo has aborted
GLOO_ENDED_IT = re.compile(r"what\(\):\s*(?:\[[^]]*\]\s*)?(.*)")
# in an error that a program catches: no answer, or a connection that was lost
NO_ANSWER = re.compile(
    r"[Tt]imed out|[Tt]imeout|(closed|reset) by peer|Broken pipe|(Read|Write) error"
)


def is_lost_connection(error: str) -> bool:
    """Whether an error is gloo's: the other side of a connection has gone, or does not answer."""
    return "gloo/transport" in error and bool(GONE.search(error) or TIMED_OUT.search(error))

"""How long an account lives: the text of `--expires` as a time."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime

from manyhands.hub.accounts.account_error import AccountError

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LATEST_YEAR = 9998
LATEST = datetime(LATEST_YEAR + 1, 1, 1).timestamp()


def until(text: str, now: float | None = None) -> float:
    """A time as seconds since 1970.

    It is `60s`, `30m`, `12h`, `3d`, `2w` from now, or a date `2026-12-01` (its end) or
    `2026-12-01T18:00`.
    """
    now = time.time() if now is None else now
    if match := re.fullmatch(r"(\d+)([smhdw])", text.strip()):
        count = int(match[1]) if len(match[1]) < 20 else math.inf
        return _in_calendar(now + count * UNITS_S[match[2]], text)
    try:
        end = datetime.fromisoformat(
            text.strip() + ("T23:59:59" if len(text.strip()) == 10 else "")
        ).timestamp()
    except (ValueError, OverflowError):
        raise AccountError(
            f"{text[:80]!r} is not a time. Write for example 12h, 3d, 2w, 2026-12-01 or "
            "2026-12-01T18:00."
        ) from None
    if end <= now:
        raise AccountError(f"{text} has passed already.")
    return _in_calendar(end, text)


def _in_calendar(end: float, text: str) -> float:
    if end > LATEST:
        raise AccountError(f"{text[:80]!r} ends after the year {LATEST_YEAR}. Name an earlier end.")
    return end

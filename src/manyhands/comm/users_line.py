"""Where in the user's code this rank is: for what is told of a wait."""

from __future__ import annotations

import linecache
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def users_line() -> str:
    """` (train.py, line 12: y = recv(c, 0))`: where in the user's code this rank is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if (
            not name.startswith(_PACKAGE)
            and f"{os.sep}torch{os.sep}" not in name
            and not name.endswith(f"{os.sep}threading.py")
        ):
            text = linecache.getline(name, frame.f_lineno).strip()
            # a cell has no name that a reader knows
            where = (
                "" if "ipykernel" in name else f"{os.path.basename(name)}, line {frame.f_lineno}: "
            )
            return f" ({where}{text})"
        frame = frame.f_back
    return ""

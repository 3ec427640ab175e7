"""The ledger's tables as text, with the widths of their columns."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(lines: Sequence[tuple[object, ...]]) -> str:
    """Format rows as columns, as wide as their widest cell: text to the left, numbers to the right.

    The first line is the head. All lines have the same number of cells.
    """
    left = [
        any(isinstance(line[i], str) for line in lines[1:]) or len(lines) == 1
        for i in range(len(lines[0]))
    ]
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            str(cell).ljust(width) if to_left else str(cell).rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in lines
    )

"""The batch of a prediction: what stays the same with more ranks, the batch of a rank or of all.

It is a number of rows of all ranks, or PER_RANK or FIXED.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.clinic.scale import Measured

PER_RANK, FIXED = "per-rank", "fixed"


def parse_batch(text: str) -> int | str:
    """Read the text of --global-batch; raises ArgumentTypeError."""
    if text in ("auto", FIXED, PER_RANK):
        return text
    if text.isascii() and text.isdigit() and 0 < int(text) < 10**12:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{text!r} is not fixed, per-rank, auto or a number of rows, such as 4096"
    )


def multiply_rows(step: Measured, batch: int | str, ranks: int) -> float:
    """Return the rows of a step of so many ranks, as a multiple of one rank's here."""
    if batch == PER_RANK:
        return ranks
    return step.alone if isinstance(batch, str) else batch / step.rows  # FIXED


def describe_batch(step: Measured, batch: int | str) -> str:
    """Explain in sentences which batch was assumed, and why.

    `batch`: as for `forecast`, or "auto"; ValueError for a number of rows where none were seen.
    """
    with_one = f"{step.rows} with one rank, " if step.alone == 1 else ""
    seen = f"Rows in a step: {with_one}{step.rows_each} on each of {step.ranks} ranks. "
    if not (step.rows and step.rows_each):
        seen = "The number of rows in a step is not known. "
        if batch not in (PER_RANK, FIXED, "auto"):
            raise ValueError(f"--global-batch {batch}: {seen}Choose {FIXED} or {PER_RANK}.")
    elif not step.batch() and batch == "auto":
        seen += "This is neither a fixed global batch nor a fixed batch per rank. "
    kind = step.batch() or PER_RANK if batch == "auto" else batch
    if kind == PER_RANK:
        then = (
            "the batch of each rank stays the same, so that the global batch grows with the ranks"
        )
    else:
        rows = f"of {step.rows_in_all if kind == FIXED else kind} rows " if step.rows else ""
        then = f"the global batch {rows}stays the same and is divided among the ranks"
    if batch == "auto":
        return f"{seen}It is assumed that {then} (--global-batch chooses)."
    return f"{seen}As --global-batch asks, {then}."


def most_ranks(step: Measured, batch: int | str) -> int | None:
    """Return the largest number of ranks of which each gets a row.

    None where there is no such limit, or where it is not known.
    """
    return (
        batch
        if not isinstance(batch, str)
        else None
        if batch == PER_RANK
        else step.rows_in_all or None
    )

"""Batches as an entry sees them: numbers. What they hold only the judge knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.hackathon.entry.rank_side import Connection


class Batch:
    """A batch that was handed out: what it holds only the accelerator knows."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<batch {self.number}>"


class Batches:
    """This rank's batches, until there are no more. Taking one costs nothing; a gradient does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        number = self._connection.ask({"do": "take"})[0]["batch"]
        if number is None:
            raise StopIteration
        return Batch(number)

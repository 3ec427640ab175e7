"""What the links share: the check of a rank, and how a module with a communicator is copied."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from manyhands.comm.communicator import Communicator


class SharesCommunicator:
    """A module with a communicator `c`, which copies of the module share.

    A communicator cannot be copied.
    """

    c: Communicator

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = self.__class__.__new__(self.__class__)
        memo[id(self)], memo[id(self.c)] = copied, self.c
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied


def check_rank(rank: object, c: Communicator, name: str) -> None:
    """Raise ValueError unless `rank` is a rank of `c`."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise ValueError(
            f"{name}={rank!r} is not a rank. Give a whole number from 0 to {c.size - 1}, or None."
        )
    if not 0 <= rank < c.size:
        raise ValueError(
            f"{name}={rank}: this communicator has the ranks 0 to {c.size - 1}. Take one of them, "
            "or start more ranks."
        )

"""The works that calls return, as a program uses them.

With gloo the list of a batch has a work of each message, with NCCL one of all. Also the question
whether one has ended.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from manyhands.cluster.on_rank import cpu_groups
from manyhands.cluster.on_rank.stack import is_user_file
from manyhands.ledger import taps
from manyhands.rehearsal.call_names import BATCH

if TYPE_CHECKING:
    import torch.distributed as dist

    from manyhands.rehearsal.trace_recorder import Recorder


def observe_batches(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `batch_isend_irecv`, whose works report if the program takes more than one."""

    @functools.wraps(original)
    def batch_isend_irecv(p2p_op_list: Sequence[Any]) -> WorkList:
        return WorkList(original(p2p_op_list), recorder, backend_of(p2p_op_list[0].group))

    return batch_isend_irecv


class WorkList(list[Any]):
    """The works of a batch.

    It notes where the program takes another one than the first, unless it has asked how many there
    are.
    """

    def __init__(self, works: Iterable[Any], recorder: Recorder, backend: str) -> None:
        super().__init__(works)
        self._recorder: Recorder | None = recorder
        self._backend = backend

    def __len__(self) -> int:
        self._recorder = None
        return super().__len__()

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int) and place not in (0, -1):
            self._note_taken()
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        code, at = frame.f_code.co_code, frame.f_lasti
        # send, receive = batch_isend_irecv(...)
        if dis.opname[code[at]] == "UNPACK_SEQUENCE" and code[at + 1] != 1:
            self._note_taken()
        return super().__iter__()

    def _note_taken(self) -> None:
        if self._recorder and is_user_file(sys._getframe(2).f_code.co_filename):
            self._recorder.note("works", call=BATCH, backend=self._backend)


# what Python says of it to a program: "'list' object has no attribute 'wait'"
WorkList.__name__ = "list"


def backend_of(group: object) -> Literal["gloo", "nccl"]:
    """ "gloo" where NCCL has nothing to do with the group, else "nccl"."""
    return "gloo" if str(getattr(group, "group_name", "")) in cpu_groups.NAMES else "nccl"


def observe_completed() -> Callable[[dist.Work], bool]:
    """Wrap `Work.is_completed`: a program that asks whether a work has ended need not wait."""
    import torch.distributed as dist

    original = dist.Work.is_completed

    @functools.wraps(original)
    def is_completed(work: dist.Work) -> bool:
        ended = original(work)
        if ended and is_user_file(sys._getframe(1).f_code.co_filename):
            taps.mark_waited(work)
        return ended

    return is_completed

"""What a rank has asked of torch.distributed.

The record is short and in shared memory, so that it outlives the process.

Every public communication call of `torch.distributed` is replaced by one that first notes its name,
group, shape, dtype, peer, tag and line (a few microseconds), then calls the original. The notebook
reads the notes when a rank hangs or dies, and compares them between ranks when a cell ends: gloo
itself does not notice that two ranks reduce different shapes.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import mmap
import os
import struct
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, overload
from weakref import WeakKeyDictionary

from manyhands.cluster.on_rank import cpu_groups
from manyhands.cluster.on_rank.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any, NoReturn

    from torch.distributed import ProcessGroup, Work

    from manyhands.cluster.payloads import Note

SLOTS, SLOT_BYTES = 512, 320
# calls entered, calls left, the number of the cell that they belong to
HEADER = struct.Struct("<qqq")

# name -> the argument whose shape and dtype must agree between the ranks (None: no tensor); the old
# names all_gather_into_tensor and reduce_scatter_tensor call the new ones, so they are noted as
# those
COLLECTIVES = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "all_gather": "tensor",
    "gather": "tensor",
    "scatter": "tensor",
    "reduce_scatter": "output",
    "all_gather_single": "input_tensor",
    "reduce_scatter_single": "output",
    "all_to_all": None,
    "all_to_all_single": None,
    "barrier": None,
    "monitored_barrier": None,
    "new_group": None,
}
# name -> the argument that holds one tensor for each rank, to be filled with what that rank sends
FILLED = {"all_gather": "tensor_list", "gather": "gather_list", "all_to_all": "output_tensor_list"}
# name -> the argument that says which rank gives or gets
ROOTS = {"broadcast": "src", "reduce": "dst", "gather": "dst", "scatter": "src"}
POINT_TO_POINT = {
    "send": ("tensor", "dst"),
    "isend": ("tensor", "dst"),
    "recv": ("tensor", "src"),
    "irecv": ("tensor", "src"),
}


@overload
def read(path: str) -> list[Note]: ...
@overload
def read(path: str, cell: int | None) -> list[Note] | None: ...
def read(path: str, cell: int | None = None) -> list[Note] | None:
    """The notes of one rank, oldest first, as a list of dicts.

    The last one is marked `open` while its call runs.

    With `cell`, its number: None where the record is of another cell, because the rank has not
    begun this one.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError:
        return []
    if len(raw) < HEADER.size:
        return []
    entered, left, of_cell = HEADER.unpack_from(raw)
    if cell not in (None, of_cell):
        return None
    notes: list[Note] = []
    for count in range(max(0, entered - SLOTS), entered):
        start = HEADER.size + (count % SLOTS) * SLOT_BYTES
        try:
            notes.append(json.loads(raw[start : start + SLOT_BYTES].rstrip(b"\0 ")))
        except ValueError:
            continue
    if notes and left < entered:
        notes[-1]["open"] = True
    return notes


class Recorder:
    """The record of one rank, in the file `path`; `install()` puts it under torch.distributed."""

    def __init__(self, path: str, is_user_file: Callable[[str], bool]) -> None:
        self.path = path
        with open(path, "wb") as file:
            # a hole in it would end this process on a full disk
            file.write(bytes(HEADER.size + SLOTS * SLOT_BYTES))
        self._file = open(path, "r+b")  # noqa: SIM115 - kept open
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._is_user_file = is_user_file
        # of what an asynchronous call has returned
        self._works: WeakKeyDictionary[Work, Note] = WeakKeyDictionary()
        self.tally = Tally()
        # (a number, the note or None) while the main thread is inside Work.wait
        self.waits: tuple[int, Note | None] | None = None
        self.clear()

    def clear(self, cell: int = -1) -> None:
        """Forget the calls of the cell before: now `cell` begins."""
        self.entered, self.left, self._cell = 0, 0, cell
        self.last: Note | None = None
        # of a group or of a stream of messages: its last number
        self._sequence: dict[Any, int] = {}
        self._write_header()

    def _write_header(self) -> None:
        HEADER.pack_into(self._map, 0, self.entered, self.left, self._cell)

    @property
    def in_call(self) -> bool:
        """Whether a recorded call is running."""
        return self.left < self.entered

    def note_of(self, work: Work | None) -> Note | None:
        """The note of the call that has returned this Work, or None."""
        return None if work is None else self._works.get(work)

    def install(self) -> None:
        """Replace the functions of torch.distributed, once per process.

        They are looked up by name, so DDP's C++ calls stay unseen.
        """
        import torch.distributed as dist
        from torch.distributed import distributed_c10d as c10d

        if not dist.is_available() or getattr(c10d.all_reduce, "recorder", None) is self:
            return
        for name in [*COLLECTIVES, *POINT_TO_POINT]:
            original = getattr(c10d, name, None)
            if original is not None:
                wrapped = self._wrap(name, inspect.unwrap(original), original)
                for module in (c10d, dist):
                    setattr(module, name, wrapped)
        # what this is for
        c10d.Work.wait = self._wrap_wait(c10d.Work.wait)  # type: ignore[method-assign]
        self.tally.install()

    def watch_exit(self) -> None:
        """Have `os._exit` note the line it is called from.

        Nothing else is left of a process that ends by it.
        """
        leave = os._exit

        @functools.wraps(leave)
        def _exit(status: int) -> NoReturn:
            self._write({"call": "os._exit", "group": "", "sequence": -1, "peer": None})
            leave(status)

        os._exit = _exit

    def _wrap_wait(self, original: Callable[..., bool]) -> Callable[..., bool]:
        numbers, main = itertools.count(), threading.main_thread().ident

        @functools.wraps(original)
        def wait(work: Work, *args: Any, **kwargs: Any) -> bool:
            if threading.get_ident() == main:
                self.waits = next(numbers), self.note_of(work)
            try:
                result = original(work, *args, **kwargs)
            finally:
                if threading.get_ident() == main:
                    self.waits = None
            self.tally.waited(work)
            return result

        return wait

    def _wrap(
        self, name: str, bare: Callable[..., Any], original: Callable[..., Any]
    ) -> Callable[..., Any]:
        from torch.distributed import Work

        parameters = inspect.signature(bare).parameters
        names, defaults = (
            list(parameters),
            {name: p.default for name, p in parameters.items() if p.default is not p.empty},
        )

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            # a call inside a call (broadcast_object_list) is noted once, a group made by some not
            # at all
            if self.in_call or kwargs.get("use_local_synchronization"):
                return original(*args, **kwargs)
            # the rest of the parameters have names or defaults
            given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
            note = self._enter(name, given)
            try:
                result = original(*args, **kwargs)
            finally:
                self._leave()
            if isinstance(result, Work):
                self._works[result] = note
                # it reads private names of torch, and the learner's call has succeeded
                with suppress(Exception):
                    self.tally.begin(result, note, given.get("group"))
            elif name == "new_group":
                cpu_groups.note(result, (args[2:3] or [kwargs.get("backend")])[0])
            return result

        call.recorder = self  # type: ignore[attr-defined]  # `install` looks for it
        return call

    def _enter(self, name: str, given: dict[str, Any]) -> Note:
        tensor_name, peer_name = POINT_TO_POINT.get(name) or (COLLECTIVES[name], None)
        group = given.get("group")
        if group is sys.modules["torch.distributed"].group.WORLD:  # the same as no group
            group = None
        note: Note = {
            "call": name,
            "group": getattr(group, "group_name", "") if group is not None else "",
        }
        tensor: Any = given.get(tensor_name) if tensor_name else None
        if hasattr(tensor, "dtype"):
            note["shape"], note["dtype"] = (
                list(tensor.shape),
                str(tensor.dtype).removeprefix("torch."),
            )
        if group is not None:
            note["ranks"] = _members(group)
        if name in FILLED and same_memory(given.get(FILLED[name]) or ()):
            note["overwritten"] = True
        if "op" in given:
            note["op"] = str(getattr(given["op"], "op", given["op"])).rpartition(".")[2]
        if name in ROOTS:
            root = _peer(given, ROOTS[name], group)
            note["root"] = (note.get("ranks") or [0])[0] if root is None else root
        if name == "new_group":  # its members must agree on who they are
            note["group"], note["ranks"] = name, [_whole(rank) for rank in given.get("ranks") or []]
        if peer_name:
            note["peer"], note["tag"] = _peer(given, peer_name, group), _whole(given.get("tag", 0))
            stream: Any = (name.lstrip("i"), note["peer"], note["tag"])
        else:
            stream = note["group"]
        note["sequence"] = self._sequence[stream] = self._sequence.get(stream, -1) + 1
        self._write(note)
        return note

    def _write(self, note: Note) -> None:
        note["file"], note["line"] = self._user_line()
        start = HEADER.size + (self.entered % SLOTS) * SLOT_BYTES
        text = json.dumps(note).encode()
        if len(text) > SLOT_BYTES:
            note["shape"], note["ranks"] = note.get("shape", [])[:4], note.get("ranks", [])[:8]
            text = json.dumps(note).encode()
        # of a long name, in which each letter may take twelve bytes
        while len(text) > SLOT_BYTES and note["file"]:
            note["file"] = note["file"][1 + (len(text) - SLOT_BYTES) // 12 :]
            text = json.dumps(note).encode()
        text = text[:SLOT_BYTES]
        self._map[start : start + SLOT_BYTES] = text.ljust(SLOT_BYTES)
        self.last = note
        self.entered += 1
        self._write_header()

    def _leave(self) -> None:
        self.left = self.entered
        self._write_header()

    def _user_line(self) -> tuple[str, int]:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if self._is_user_file(frame.f_code.co_filename):
                return os.path.basename(frame.f_code.co_filename), frame.f_lineno
            frame = frame.f_back
        return "", 0


def same_memory(tensors: Iterable[Any]) -> bool:
    """Whether two of these tensors begin at the same place in memory.

    Each is to be filled by a different rank.
    """
    import torch

    places = [
        tensor.data_ptr()
        for tensor in tensors
        if type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout == torch.strided
        and tensor.numel()
    ]
    return len(set(places)) < len(places)


def _members(group: ProcessGroup) -> list[int]:
    import torch.distributed as dist

    try:
        return dist.get_process_group_ranks(group)
    except Exception:  # noqa: BLE001 - a group that this rank is not in: torch itself will say so
        return []


def _peer(given: dict[str, Any], peer_name: str, group: ProcessGroup | None) -> Any:
    """The global rank of the other side, or None for `recv` from anybody."""
    peer = given.get(peer_name)
    if peer is None and given.get("group_" + peer_name) is not None:
        ranks = _members(group) if group is not None else None
        peer = ranks[given["group_" + peer_name]] if ranks else given["group_" + peer_name]
    return _whole(peer)


def _whole(value: Any) -> Any:
    """A number of numpy's or torch's as Python's own, which JSON can hold."""
    return int(value) if hasattr(value, "__index__") else value

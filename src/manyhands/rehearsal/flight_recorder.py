"""Traces in the format of PyTorch's flight recorder, which `torchfrtrace` can read.

    write_flight_record(traces, "record")          # record/rank_0, record/rank_1, ...
    torchfrtrace record --prefix rank_             # or -j, to list the calls

It holds what NCCL's recorder would hold where the replay is at its end (strict, without
device_id): calls that are done are "completed", one that runs for ever is "started", one that
queues or whose ranks have yet to meet is "scheduled"; what Python has not come to is not there.
`torchfrtrace` compares collectives, rank by rank; of messages it compares little, and it decides no
deadlock: see docs/HANGS.md.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyhands.rehearsal.replay import Replay

if TYPE_CHECKING:
    from manyhands.rehearsal.trace import Event, Layout, Traces

VERSION = "2.10"  # of the format, as PyTorch 2.13 writes it
NAMES = {
    "all_gather_object": "all_gather",
    "gather_object": "gather",
    "broadcast_object_list": "broadcast",
    "scatter_object_list": "scatter",
    "monitored_barrier": "barrier",
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
    "all_reduce_coalesced": "allreduce_coalesced",
    "all_gather_coalesced": "ALLGATHER_coalesced",
    "all_gather_single_coalesced": "all_gather_into_tensor_coalesced",
    # where torchfrtrace has other ones
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
}
ONE_TO_MANY, MANY_TO_ONE = {"all_gather", "gather"}, {"reduce_scatter", "scatter"}
IN_PLACE = {"all_reduce", "allreduce_coalesced", "broadcast", "reduce"}
DTYPES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    # PyTorch's names there
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}


def write_flight_record(traces: Traces, folder: str | Path) -> list[Path]:
    """Write `rank_N` for each rank of `traces` into `folder`, which is made.

    `traces` is {global rank: [Event, ...]}.

    Returns the files. Raises FileExistsError where the folder holds something already,
    `trace.BadTraceError` as `judge`.
    """
    folder = Path(folder)
    check_free(folder)
    dumps = make_flight_record(traces)
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for rank, dump in dumps.items():
        files.append(folder / f"rank_{rank}")
        files[-1].write_bytes(pickle.dumps(dump))
    return files


def check_free(folder: str | Path) -> None:
    """Raise FileExistsError where `folder` holds something already."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is not empty: name a different folder for the record")


def make_flight_record(traces: Traces) -> dict[int, dict[str, Any]]:
    """{global rank: what the flight recorder of this rank would dump}."""
    replay = Replay(traces)
    ended = Counter(id(event) for ends in replay.done for _, event in ends)
    stuck = {id(event): why for _, event, why in replay.stuck()}
    dumps = {}
    for rank, events in traces.items():
        reached = events[: replay.at[rank] + bool(replay.hold[rank])]
        calls = [event for event in reached if event.kind in ("collective", "message")]
        entries: list[dict[str, Any]] = []
        for event, seqs in zip(calls, _sequences(calls), strict=True):
            done = event.on_cpu or ended[id(event)] >= max(1, len(event.parts))
            runs = stuck.get(id(event), "").startswith("runs")
            entries += _entries(
                rank, event, seqs, "completed" if done else "started" if runs else "scheduled"
            )
        for number, entry in enumerate(entries):
            entry.update(record_id=number, op_id=number + 1, time_created_ns=number)
        groups = {
            event.group: event.ranks
            for events in traces.values()
            for event in events
            if event.ranks
        }
        config = {
            name: {"name": name, "desc": _description(name), "ranks": str(list(ranks))}
            for name, ranks in sorted(groups.items())
            if rank in ranks
        }
        dumps[rank] = {"version": VERSION, "pg_config": config, "pg_status": {}, "entries": entries}
    return dumps


def _sequences(calls: Iterable[Event]) -> Iterator[tuple[int, int]]:
    """Yield how many collectives and how many messages each call's group has had.

    The call itself is included; a batch counts as one.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for event in calls:
        counts[event.group, event.kind] += 1
        yield counts[event.group, "collective"], counts[event.group, "message"]


def _description(group: str) -> str:
    return "default_pg" if group == "0" else "undefined"


def _entries(rank: int, event: Event, seqs: tuple[int, int], state: str) -> list[dict[str, Any]]:
    collective, message = seqs
    backend = "gloo" if event.on_cpu else "nccl"
    same = {
        "pg_id": 0,
        "process_group": (event.group, _description(event.group)),
        "collective_seq_id": collective,
        "p2p_seq_id": message,
        "state": state,
        "is_p2p": bool(event.parts),
        "retired": state == "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "timeout_ms": 600000,
        "frames": [{"name": event.call, "filename": event.file, "line": event.line}],
    }
    if not event.parts:
        name = NAMES.get(event.call, event.call)
        given, filled = _given_and_filled(name, event.tensors, len(event.ranks))
        return [_entry(f"{backend}:{name}", given, filled, event.tensors, same)]
    place = {global_rank: number for number, global_rank in enumerate(sorted(event.ranks))}
    entries = []
    for part in event.parts:
        arrow, ends = ("->", "send") if part.way == "send" else ("<-", "recv")
        peer = rank if part.peer is None else part.peer
        name = f"{backend}:{ends} {place[rank]}{arrow}{place.get(peer, place[rank])}"
        size = [list(part.tensor.shape)]
        entries.append(_entry(name, size, size, [part.tensor], same))
    if event.is_batch:
        entries.append(_entry(f"{backend}:coalesced", [], [], [], same))
    return entries


def _given_and_filled(
    name: str, tensors: Sequence[Layout], size: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return (input sizes, output sizes) as NCCL's recorder has them.

    Of a list of tensors that go with one, it is the sum.
    """
    shapes = [list(tensor.shape) for tensor in tensors]
    if not shapes:
        # a barrier; an object, whose bytes are not counted
        return [[1]], [[size if name == "all_gather" else 1]]
    if name in ONE_TO_MANY:
        return shapes[:1], [[sum(tensor.numel for tensor in tensors[1:])]] if shapes[1:] else [[]]
    if name in MANY_TO_ONE:
        return [[sum(tensor.numel for tensor in tensors[:-1])]] if shapes[1:] else [[]], shapes[-1:]
    half = len(shapes) if name in IN_PLACE else len(shapes) // 2
    return shapes[:half], shapes if name in IN_PLACE else shapes[half:]


def _entry(
    name: str,
    given: list[list[int]],
    filled: list[list[int]],
    tensors: Sequence[Layout],
    same: dict[str, Any],
) -> dict[str, Any]:
    dtypes = [DTYPES.get(tensor.dtype, tensor.dtype) for tensor in tensors[:1]] or ["Float"]
    return {
        **same,
        "profiling_name": name,
        "input_sizes": given,
        "output_sizes": filled,
        "input_dtypes": dtypes * len(given),
        "output_dtypes": dtypes * len(filled),
    }

"""What NCCL does where two ranks' calls do not match: it does not check, and one may wait forever.

Two ranks may make different collectives of one communicator, or one collective with a different
operation, root, size or type; the two ends of a message may differ in tag, size, type or layout.
Sources: NCCL's user guide, "Collective Operations": undefined behaviour; a receive larger than what
was sent was seen to wait forever (docs/GPU.md); tags: distributed_c10d.py, "tag is not supported
with the NCCL backend".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyhands.rehearsal.trace import Event, Part

WAITS = {"size", "root"}  # where both sides differ in these, one may wait for what never comes
WAITS_TEXT = "NCCL does not check, and a rank may wait forever"
SAME_SIZE = {
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather_single",
    "reduce_scatter_single",
    # the last two: their names before PyTorch 2.13
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
}


# what one rank sends, another has made room for
MOVES = {"all_gather", "gather", "scatter", "all_to_all"}


def compare_calls(event: Event, answer: Event, rank: int, other: int) -> tuple[str, str] | None:
    """Compare two ranks' calls of one collective, `event` of `rank` and `answer` of `other`.

    Returns (severity, in what they do not agree and what comes of it), or None.
    """
    if event.call != answer.call:
        return (
            "may hang",
            ": the result of two different collectives is undefined, and NCCL does not check",
        )
    facts, others = _facts(event), _facts(answer)
    differ = [name for name in facts if facts[name] != others[name]]
    moved = [
        (
            _bytes_moved(event, rank, other, sends=way),
            _bytes_moved(answer, other, rank, sends=not way),
        )
        for way in (True, False)
    ]
    if any(None not in sizes and sizes[0] != sizes[1] for sizes in moved):
        differ.append("size")
    if WAITS.intersection(differ):
        return "may hang", _apart(" and ".join(differ), WAITS_TEXT)
    return ("differs", _apart(" and ".join(differ), "NCCL does not check")) if differ else None


def compare_messages(part: Part, answer: Part) -> tuple[str, str] | None:
    """Compare the two ends of a message.

    Returns (severity, in what they do not agree and what comes of it), or None.
    """
    if part.tag != answer.tag:
        return "differs", _apart("tag", "NCCL has none and pairs messages in order")
    if part.tensor.bytes != answer.tensor.bytes:
        return "may hang", _apart("size", WAITS_TEXT)
    if part.tensor.dtype != answer.tensor.dtype:
        return "differs", _apart("dtype", "NCCL does not check")
    if part.tensor.contiguous != answer.tensor.contiguous:
        return "differs", _apart(
            "layout in memory", "NCCL moves bytes in the order in which they are stored"
        )
    return None


def _apart(what: str, then: str) -> str:
    return f", which has a different {what}: {then}"


def _facts(event: Event) -> dict[str, Any]:
    first = event.tensors[0] if event.tensors else None
    same = first if event.call in SAME_SIZE else None
    size = (
        [tensor.bytes for tensor in event.tensors[:-1]]
        if event.call == "reduce_scatter"
        else same and same.bytes
    )
    return {
        "operation": event.op,
        "root": event.root,
        "size": size,
        "dtype": first and first.dtype,
        "layout in memory": same and same.channels_last,
    }


def _bytes_moved(event: Event, rank: int, other: int, sends: bool) -> int | None:
    """Return how many bytes `rank` sends to `other` in its call, or makes room for.

    None where that is none or not known.
    """
    sizes, members = [tensor.bytes for tensor in event.tensors], list(event.ranks)
    place, size = members.index(other), len(members)
    root = None if event.root is None else members[event.root]
    if event.call == "all_gather" or (
        event.call == "gather" and root == (other if sends else rank)
    ):
        return sizes[0] if sends else sizes[1 + place] if len(sizes) == 1 + size else None
    if event.call == "scatter" and root == (rank if sends else other):
        return (sizes[place] if len(sizes) == size + 1 else None) if sends else sizes[-1]
    if event.call == "all_to_all" and len(sizes) == 2 * size:
        return sizes[place] if sends else sizes[size + place]
    return None

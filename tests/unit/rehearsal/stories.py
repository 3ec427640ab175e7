"""Traces written by hand: what each rank does, as the programs of tests would be recorded."""

from manyhands.rehearsal import Event, Layout, Part

SMALL = Layout(shape=(4,))


class Rank:
    """Writes the trace of one rank; each call is on a line of its own, 1, 2, 3 ...

    Returns the event's number.
    """

    def __init__(self, rank, size):
        self.rank, self.all, self.events = rank, tuple(range(size)), []

    def add(self, kind, **facts):
        self.events.append(Event(kind, line=len(self.events) + 1, **facts))
        return len(self.events) - 1

    def collective(
        self,
        call="all_reduce",
        group=None,
        tensor=SMALL,
        op=None,
        later=False,
        backend="nccl",
        root=None,
    ):
        name, ranks = group or ("0", self.all)
        op = op or ("SUM" if "reduce" in call else None)
        tensors = () if call == "barrier" or call.endswith(("object", "object_list")) else (tensor,)
        return self.add(
            "collective",
            call=call,
            group=name,
            ranks=ranks,
            tensors=tensors,
            op=op,
            root=root,
            is_async=later,
            backend=backend,
        )

    def message(self, call, peer, tag=0, tensor=SMALL, group=None, backend="nccl"):
        name, ranks = group or ("0", self.all)
        part = Part(call.removeprefix("i"), peer, tag, tensor)
        return self.add(
            "message",
            call=call,
            group=name,
            ranks=ranks,
            parts=(part,),
            is_async=call[0] == "i",
            backend=backend,
        )

    def batch(self, *parts, group=None):
        name, ranks = group or ("0", self.all)
        return self.add(
            "message",
            call="batch_isend_irecv",
            group=name,
            ranks=ranks,
            is_async=True,
            parts=tuple(Part(*part) for part in parts),
        )

    def wait(self, of):
        return self.add("wait", of=of)


def story(size, tell):
    """{rank: its trace}, of `tell(rank)`, which is given a `Rank`."""
    ranks = [Rank(rank, size) for rank in range(size)]
    for rank in ranks:
        tell(rank)
    return {rank.rank: rank.events for rank in ranks}

"""What an entry gets on its rank where the model does not fit.

This is the rank's device, whose memory the judge has.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.hackathon.entry.batches import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from manyhands.hackathon.entry.rank_side import Connection
    from manyhands.hackathon.judge.sandbox_keeper import Order


class Array:
    """A flat array of float32 in the device's memory.

    It is freed when nothing in the entry names it any more.
    """

    def __init__(self, device: Device, number: int | None, size: int) -> None:
        self.device, self.number, self.size = device, number, size

    def __len__(self) -> int:
        return self.size

    def __del__(self) -> None:
        self.device._free(self.number)


class Kept(Array):
    """What a forward keeps for its backward.

    It is freed by the backward, or when nothing names it any more.
    """

    rows = 0


class Device:
    """The device of a rank.

    `sizes[stage]` is the number of weights of a stage of the model, `activation` that of the
    numbers that go from one stage to the next, for a row of a batch. Out of memory: no error, the
    run ends.
    """

    def __init__(self, connection: Connection, numbers: Iterator[int], order: Order) -> None:
        self._connection, self._numbers = connection, numbers
        self.rank, self.ranks = order["rank"], order["ranks"]
        self.sizes, self.activation, self.batch_size = (
            order["sizes"],
            order["activation"],
            order["batch_size"],
        )

    def weights(self, stage: int, begin: int = 0, end: int | None = None) -> Array:
        """The stage's weights at the start, or a part of them; takes no time."""
        end = self.sizes[stage] if end is None else end
        return Array(self, self._do("weights", stage, begin, end), end - begin)

    def zeros(self, size: int) -> Array:
        """Make an array of so many zeros on the device."""
        return Array(self, self._do("zeros", size), size)

    def forward(
        self,
        stage: int,
        weights: Array,
        batch: Batch,
        rows: tuple[int, int],
        x: Array | None = None,
        keep: bool = True,
    ) -> tuple[Any, Kept | None]:
        """(what comes out, what is kept) of a stage for the rows (begin, end) of a batch.

        `x` is what came out of the stage before. The last stage gives the loss, a number, the mean
        over these rows. Without `keep` nothing is kept, and there is no backward. Takes call_s +
        rows * row_s of the challenge.
        """
        if not isinstance(batch, Batch):
            raise TypeError(
                f"forward takes a batch of `batches`; this is a {type(batch).__name__}."
            )
        begin, end = rows
        head = {
            "do": "forward",
            "stage": stage,
            "weights": weights.number,
            "x": _number(x),
            "batch": batch.number,
            "begin": begin,
            "end": end,
            "keep": keep,
        }
        came = self._connection.ask(head)[0]
        out = (
            came["loss"]
            if came["out"] is None
            else Array(self, came["out"], (end - begin) * self.activation)
        )
        if came["kept"] is None:
            return out, None
        activations = Kept(self, came["kept"], 0)
        activations.rows = end - begin
        return out, activations

    def backward(self, kept: Kept, into: Array, slopes: Array | None = None) -> Array | None:
        """The gradient of the `x` of a forward; None in the first stage.

        `slopes` is the gradient of what came out; None in the last stage. The gradient of the
        weights is added to `into`. Takes twice as long as the forward.
        """
        head = {
            "do": "backward",
            "kept": kept.number,
            "into": into.number,
            "slopes": _number(slopes),
        }
        out = self._connection.ask(head)[0]["out"]
        kept.number = None
        return None if out is None else Array(self, out, kept.rows * self.activation)

    def adam(
        self, weights: Array, slopes: Array, first: Array, second: Array, step: int, rate: float
    ) -> None:
        """A step of Adam, in place, on arrays of one size; `step` counts from 1.

        Takes no time, as what follows.
        """
        self._do("adam", weights.number, slopes.number, first.number, second.number, step, rate)

    def add(self, one: Array, other: Array, times: float = 1.0) -> None:
        """Add `times * other` to one."""
        self._do("add", one.number, other.number, times)

    def scale(self, one: Array, times: float) -> None:
        """Multiply one by `times`."""
        self._do("scale", one.number, times)

    def give(self, stage: int, weights: Array, begin: int = 0) -> None:
        """These are the trained weights of a stage, or of a part that begins there.

        All of all stages must be given, by whichever ranks; what two give must be the same.
        """
        self._connection.ask(
            {"do": "give", "stage": stage, "begin": begin, "array": weights.number}
        )

    # ------------------------------------------------------------ between ranks; `.wait()` of what
    # they return

    def all_reduce(self, one: Array) -> Ongoing:
        """The sum over all ranks, in place."""
        return self._start("all_reduce", one, one)

    def all_gather(self, one: Array, into: Array) -> Ongoing:
        """All ranks' arrays, one behind the other."""
        return self._start("all_gather", one, into)

    def reduce_scatter(self, one: Array, into: Array) -> Ongoing:
        """This rank's part of the sum over all ranks."""
        return self._start("reduce_scatter", one, into)

    def send(self, one: Array, peer: int, tag: int = 0) -> Ongoing:
        """Start to send an array to a rank; the call's `wait` waits until it is done."""
        return self._start("send", one, None, peer=peer, tag=tag)

    def recv(self, into: Array, peer: int, tag: int = 0) -> Ongoing:
        """Start to receive from a rank into an array; the call's `wait` waits for it."""
        return self._start("recv", self.zeros(0), into, peer=peer, tag=tag)

    def _start(self, call: str, one: Array, into: Array | None, **more: int) -> Ongoing:
        number = next(self._numbers)
        members = {} if more else {"members": list(range(self.ranks))}
        self._connection.tell(
            {
                "do": "start",
                "id": number,
                "call": call,
                "dtype": "float32",
                "array": one.number,
                "into": _number(into),
                **members,
                **more,
            }
        )
        return Ongoing(self._connection, number)

    def _do(self, call: str, *values: float | None) -> Any:
        return self._connection.ask({"do": call, "values": values})[0]["out"]

    def _free(self, number: int | None) -> None:
        """At whatever moment: nothing is waited for."""
        with suppress(OSError):
            if number is not None:
                self._connection.tell({"do": "free", "array": number})


class Ongoing:
    """A message under way; what comes is in its array after `wait`, and not before.

    Until then both of its arrays stay in memory, and what is sent must not be changed.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection, self._number = connection, number

    def wait(self) -> None:
        """Wait until the call is done, on the clock of this rank."""
        self._connection.ask({"do": "wait", "id": self._number})


def _number(array: Array | None) -> int | None:
    return None if array is None else array.number


def batches(order: Order) -> Iterator[Batch]:
    """All batches, on each rank the same ones in the same order.

    Several ranks may work on one batch.
    """
    return (Batch(number) for number in range(order["most_batches"]))

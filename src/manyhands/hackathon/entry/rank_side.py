"""What an entry gets on its rank: a model that computes elsewhere, batches, and a process group.

All of it only asks the judge. What an entry changes here changes its own rank alone: the judge
counts what arrives.
"""

from __future__ import annotations

import ast
import itertools
import sys
import threading
import traceback
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from manyhands.hackathon.challenges.model import network_of
from manyhands.hackathon.entry import device_side, entry_size
from manyhands.hackathon.entry.batches import Batch, Batches
from manyhands.hackathon.entry.judge_group import JudgeGroup
from manyhands.hackathon.judge import frames

if TYPE_CHECKING:
    import socket as sockets
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType
    from typing import Any

    from manyhands.hackathon.judge.sandbox_keeper import Order


ENTRY = "entry.py"


class Connection:
    """To the judge. Threads of an entry take turns."""

    def __init__(self, socket: sockets.socket) -> None:
        self.socket, self.turn = socket, threading.RLock()

    def __deepcopy__(self, memo: object) -> Connection:
        return self  # a copy of the model computes on the same accelerator

    def tell(self, head: dict[str, Any], payload: bytes = b"") -> None:
        """Send the judge a message that has no answer."""
        with self.turn:
            self.socket.sendall(frames.pack(head, payload))

    def ask(self, head: dict[str, Any], payload: bytes = b"") -> tuple[dict[str, Any], bytearray]:
        """Send the judge a message, and return the head and the payload of its answer."""
        with self.turn:
            self.tell(head, payload)
            return frames.receive(self.socket)


class Model(torch.nn.Module):
    """The challenge's network.

    Its weights are here; `model(batch)` sends them to the rank's accelerator and gives the loss,
    the mean over the batch. **backward**: `loss.backward()` adds the gradient to each parameter's
    `grad`, as the accelerator has computed it, and costs nothing more.
    """

    def __init__(self, layers: Iterable[int], weights: bytes, connection: Connection) -> None:
        super().__init__()
        self.network = network_of(layers)
        self._connection = connection
        values = torch.frombuffer(bytearray(weights), dtype=torch.float32)
        torch.nn.utils.vector_to_parameters(values, self.network.parameters())

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch; its backward asks the judge for the gradient."""
        if not isinstance(batch, Batch):
            raise TypeError(
                "model(batch) takes a batch of `batches`and returns its loss; this is a "
                f"{type(batch).__name__}."
            )
        return _Loss.apply(self._connection, batch.number, *self.network.parameters())


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, connection: Connection, number: int, *parameters: torch.Tensor
    ) -> torch.Tensor:
        head, slopes = connection.ask({"do": "gradient", "batch": number}, flat(parameters))
        ctx.slopes, ctx.shapes = (
            torch.frombuffer(slopes, dtype=torch.float32),
            [parameter.shape for parameter in parameters],
        )
        return torch.tensor(head["loss"])

    @staticmethod
    def backward(ctx: Any, above: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        parts = ctx.slopes.split([shape.numel() for shape in ctx.shapes])
        return (
            None,
            None,
            *(above * part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True)),
        )


def flat(parameters: Iterable[torch.Tensor]) -> bytes:
    """Return the numbers of all parameters, one after the other, as bytes of float32."""
    return torch.cat([parameter.detach().flatten() for parameter in parameters]).numpy().tobytes()


class Said:
    """What the entry prints goes to the judge, which shows it to the team on public seeds."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._begun = connection, ""

    def write(self, text: str) -> int:
        """Send the judge each line that is complete."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._connection.tell({"do": "say", "text": line[:500]})
        return len(text)

    def flush(self) -> None:
        """Do nothing: a line goes to the judge when it is complete."""
        pass


def run(order: Order, socket: sockets.socket) -> None:
    """Run the entry of an order on this rank.

    Send its weights to the judge, or what is wrong.
    """
    torch.set_num_threads(1)
    connection = Connection(socket)
    sys.stdout = sys.stderr = Said(connection)
    try:
        train, numbers = _function(_code(order.pop("source"))), itertools.count()
        group = _join(connection, numbers, order["rank"], order["ranks"])
        if "sizes" in order:
            device = device_side.Device(connection, numbers, order)
            given, weights = train(device, device_side.batches(order), group), b""
        else:
            model = Model(order["layers"], bytes.fromhex(order["weights"]), connection)
            given = train(model, Batches(connection), group)
            weights = flat(model.network.parameters())
        if given is not None:
            raise TypeError(
                f"train returned a {type(given).__name__}: it must return nothing, and leave the "
                "trained weights in the model."
            )
        connection.tell({"do": "done"}, weights)
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the entry's end
        connection.tell({"do": "failed", "text": _told(error)})


def _code(source: str) -> CodeType:
    """The entry's code, without docstrings.

    What does not count for the entry's size cannot be read by the entry either.
    """
    return compile(entry_size.without_docstrings(ast.parse(source, ENTRY)), ENTRY, "exec")


def _function(code: CodeType) -> Callable[..., object]:
    module = type(sys)("entry")
    sys.modules["entry"] = module
    module.__file__ = ENTRY
    exec(code, module.__dict__)
    train = getattr(module, "train", None)
    if not callable(train):
        raise NameError("entry.py has no function train(model, batches, comm).")
    return train


def _join(
    connection: Connection, numbers: Iterator[int], rank: int, ranks: int
) -> dist.ProcessGroup | None:
    """The group of all ranks, which is also the default one of torch.distributed."""

    def make(options: Any, _: object) -> JudgeGroup:
        members = list(options.global_ranks_in_group) or list(range(ranks))
        return JudgeGroup(connection, numbers, rank, members, ranks)

    dist.Backend.register_backend("judge", make, extended_api=True, devices=["cpu"])
    dist.init_process_group("judge", rank=rank, world_size=ranks, store=dist.HashStore())
    return dist.group.WORLD


def _told(error: BaseException) -> str:
    """The error in a line, with the line of the entry where it came from."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == ENTRY
    ]
    if isinstance(error, SyntaxError) and error.filename == ENTRY:
        lines = [error.lineno]
    where = f"{ENTRY}, line {lines[-1]}: " if lines else ""
    message = (
        error.msg
        if isinstance(error, SyntaxError)
        else str(error).splitlines()[0]
        if str(error)
        else ""
    )
    return f"{where}{type(error).__name__}: {message}".removesuffix(": ")[:500]

"""The referee of one run: answers what the ranks ask, and judges the weights that they give."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

import torch

from manyhands.hackathon.challenges import tasks
from manyhands.hackathon.challenges.model import network_of
from manyhands.hackathon.judge import frames, honesty
from manyhands.hackathon.judge.accelerator import Accelerator, accuracy, flat, load
from manyhands.hackathon.judge.network import (
    ANYBODY,
    DTYPES,
    PATTERNS,
    Network,
    Operation,
    RefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from torch import nn

    from manyhands.hackathon.challenges.challenge import Challenge
    from manyhands.hackathon.judge.judging_record import RunRecord
    from manyhands.hackathon.judge.sandbox_keeper import OfModel

    # a head, with a payload or without
    Answer = tuple[dict[str, Any]] | tuple[dict[str, Any], bytes]


HOW = ("sum", "avg", "product", "min", "max")
MOST_SAID = 200  # lines of prints that are kept, of a rank


@dataclass
class Run:
    """What came of it. `problem` is a sentence where there is no score."""

    problem: str = ""
    accuracy: float = 0.0
    clock_s: float = 0.0
    updates: int = 0
    gradients: tuple[int, ...] = ()  # of each rank, as what follows
    messages: tuple[int, ...] = ()
    sent_bytes: tuple[int, ...] = ()
    processor_s: tuple[float, ...] = ()
    most_bytes: tuple[int, ...] = ()  # of the device's memory, where the challenge has one
    telling: tuple[int, ...] = ()  # gradients at weights that tell of single samples (`honesty.py`)
    gap: float = 0.0  # the largest one in the losses that were asked for

    def as_record(self) -> RunRecord:
        """The run as it is written into a record."""
        record = {
            name: (
                [round(number, 4) for number in value]
                if isinstance(value, (tuple, list))
                else round(value, 4)
                if isinstance(value, float)
                else value
            )
            for name, value in asdict(self).items()
        }
        return cast("RunRecord", record)


class Referee:
    """Answers the ranks of one run."""

    limit: asyncio.Timeout
    until: float

    def __init__(self, challenge: Challenge, seed: bytes) -> None:
        self.challenge, self.task = challenge, challenge.task(seed)
        self.network = Network(challenge.ranks, challenge.rate_mbit, challenge.delay_ms)
        self.pace = tasks.Pace(
            seed, challenge.gradient_s, challenge.ranks, challenge.slow_times, challenge.slow_s
        )
        self.weights: list[bytes | None] = [None] * challenge.ranks
        self.said: list[list[str]] = [[] for _ in range(challenge.ranks)]
        self.operations: list[dict[int, Operation]] = [{} for _ in range(challenge.ranks)]
        self.accelerators = self._accelerators(seed)

    # a `DeviceMemory` for each rank, where the challenge is about memory
    def _accelerators(self, seed: bytes) -> Sequence[Any]:
        challenge = self.challenge
        return [
            Accelerator(
                network_of(challenge.layers),
                x,
                y,
                challenge.batch_size,
                challenge.most_batches,
                tasks.stream(seed, f"order {rank}"),
            )
            for rank, (x, y) in enumerate(self.task.shards)
        ]

    def order(self) -> OfModel:
        """What a rank is told of the model."""
        network = network_of(self.challenge.layers)
        load(network, self.task.weights.numpy().tobytes())
        return {"layers": self.challenge.layers, "weights": flat(network).hex()}

    async def serve(
        self, rank: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Until the rank has given its weights; raises `RefusedError`."""
        while self.weights[rank] is None:
            try:
                head, payload = await frames.read(reader)
                self.heard()
                answer = await self._answer(rank, head, payload)
            except (asyncio.IncompleteReadError, ConnectionError):
                raise RefusedError(f"Rank {rank} has ended without giving its weights.") from None
            except frames.BrokenMessageError as broken:
                raise RefusedError(f"Rank {rank}: {broken}") from None
            except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
                # also of torch
                raise RefusedError(
                    f"Rank {rank} has sent the judge what the model, the batches and the group "
                    f"never send ({type(error).__name__})."
                ) from None
            if answer:
                writer.write(frames.pack(*answer))
                with suppress(ConnectionError):  # the next read tells
                    await writer.drain()

    def heard(self) -> None:
        """A rank has asked for something: the run may go on for a while."""
        now = asyncio.get_running_loop().time()
        self.limit.reschedule(min(now + self.challenge.quiet_s, self.until))

    async def _answer(
        self, rank: int, head: dict[str, Any], payload: bytes | bytearray
    ) -> Answer | None:
        """(head, payload) for what is asked; None where nothing is to be answered."""
        accelerator, do = self.accelerators[rank], head["do"]
        if do == "take":
            return ({"batch": accelerator.take()},)
        if do == "gradient":
            loss, slopes, new = accelerator.gradient(head["batch"], payload)
            self.network.updates[rank] += new
            self.network.compute(rank, self.pace.gradient_s(rank, self.network.clock_s[rank]))
            return {"loss": loss}, slopes
        if do == "start":
            self._start(rank, head, payload)
        elif do == "wait":
            return await self._wait(rank, head)
        elif do == "clock":
            return ({"clock_s": self.network.clock_s[rank]},)
        elif do == "say":
            if len(self.said[rank]) < MOST_SAID:
                self.said[rank].append(str(head["text"])[:500])
        elif do == "done":
            self._take_weights(rank, payload)
            self.network.leave(rank)
        elif do == "failed":
            raise RefusedError(f"Rank {rank}: {in_a_line(head['text'])}")
        else:
            raise ValueError(do)
        return None

    async def _wait(self, rank: int, head: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """What an operation of the rank brings, when it is done."""
        operation = self.operations[rank].pop(head["id"])
        result = await self.network.wait(operation)
        data = result.contiguous().view(torch.uint8).numpy().tobytes()
        return {
            "dtype": str(result.dtype).removeprefix("torch."),
            "source": operation.peer,
        }, data

    def _take_weights(self, rank: int, payload: bytes | bytearray) -> None:
        load(network_of(self.challenge.layers), payload)
        self.weights[rank] = bytes(payload)

    def _start(self, rank: int, head: dict[str, Any], payload: bytes | bytearray) -> None:
        number, call, dtype = head["id"], head["call"], DTYPES[head["dtype"]]
        if (
            not isinstance(number, int)
            or number in self.operations[rank]
            or head.get("how", "sum") not in HOW
        ):
            raise ValueError(number)
        data = (
            torch.frombuffer(bytearray(payload), dtype=torch.uint8).view(dtype)
            if payload
            else torch.empty(0, dtype=dtype)
        )
        operation = Operation(
            rank,
            call,
            dtype=head["dtype"],
            how=head.get("how", "sum"),
            data=data,
            on_device="array" in head,
        )
        if call in ("send", "recv"):
            anybody = call == "recv" and head["peer"] == ANYBODY
            operation.peer, operation.tag = (
                ANYBODY if anybody else self._rank(head["peer"]),
                int(head["tag"]),
            )
            if operation.peer == rank:
                raise RefusedError(f"Rank {rank} sends to itself.")
        else:
            PATTERNS[call]
            members = operation.members = tuple(map(self._rank, head["members"]))
            operation.root, operation.splits = (
                int(head.get("root", 0)),
                tuple(map(int, head.get("splits", ()))),
            )
            self._check(operation, len(members))
            if (
                rank not in members
                or len(set(members)) != len(members)
                or operation.root not in range(len(members))
            ):
                raise ValueError(members)
        self.network.start(operation)
        self.operations[rank][number] = operation

    def _check(self, operation: Operation, ranks: int) -> None:
        elements, splits = operation.given.numel(), operation.splits
        if operation.call == "reduce_scatter" and elements % ranks:
            raise RefusedError(
                f"Rank {operation.rank}: reduce_scatter of {elements} elements among {ranks} ranks "
                "cannot be divided equally."
            )
        if operation.call == "all_to_all" and (
            len(splits) != ranks or sum(splits) != elements or min(splits) < 0
        ):
            raise ValueError(splits)

    def _rank(self, number: object) -> int:
        if not isinstance(number, int) or not 0 <= number < self.challenge.ranks:
            raise ValueError(number)
        return number

    def result(self) -> Run:
        """The `Run` of ranks that have all given their weights."""
        if len(set(self.weights)) > 1:
            apart = [
                rank for rank, weights in enumerate(self.weights) if weights != self.weights[0]
            ]
            return Run(
                f"The ranks end with different weights, since {_ranks(apart)} and rank 0 differ."
            )
        network, weights = network_of(self.challenge.layers), self.weights[0]
        assert weights is not None
        return Run(
            accuracy=accuracy(network, weights, *self.task.test),
            gap=self._gap(network),
            telling=tuple(accelerator.reading.count for accelerator in self.accelerators),
            clock_s=max(self.network.clock_s),
            updates=max(self.network.updates),
            gradients=tuple(accelerator.gradients for accelerator in self.accelerators),
            messages=tuple(self.network.messages),
            sent_bytes=tuple(self.network.sent_bytes),
        )

    def _gap(self, network: nn.Module) -> float:
        """The largest gap in the losses down to that of the trained weights.

        `network` has the trained weights.
        """
        x, y = map(torch.cat, zip(*self.task.shards, strict=True))
        with torch.no_grad():
            final = torch.nn.functional.cross_entropy(network(x), y).item()
        losses = [loss for accelerator in self.accelerators for loss in accelerator.losses]
        return honesty.largest_gap(losses, final, self.challenge.layers[-1])


def in_a_line(text: object) -> str:
    """What comes from a rank, for one line of a report."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))[:500]


def _ranks(numbers: Sequence[int]) -> str:
    return ("rank " if len(numbers) == 1 else "ranks ") + ", ".join(map(str, numbers))

"""The referee of a challenge whose model does not fit.

Each rank has a `DeviceMemory`, and asks for what happens in it.

Its network carries arrays from one memory to another, and only from array to array: no host sees
what is in one. From the start of a message until it is waited for, both arrays of a rank stay in
its memory, whether the entry still names them or not. What a rank has sent and the receiver has not
asked for yet counts as memory of the sender.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch

from manyhands.gpt.transformer import GPT
from manyhands.hackathon.challenges import tasks
from manyhands.hackathon.judge.device_memory import DeviceMemory
from manyhands.hackathon.judge.network import RefusedError
from manyhands.hackathon.judge.referee import Referee, Run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    import numpy as np

    from manyhands.hackathon.challenges.challenge import Challenge
    from manyhands.hackathon.judge.referee import Answer
    from manyhands.hackathon.judge.sandbox_keeper import OfModel


FREE = ("weights", "zeros", "adam", "add", "scale")  # calls that take no time on the clock


class UnderWay(NamedTuple):
    """A message of a rank: the number of its arrays in the memory, and these."""

    place: int
    array: torch.Tensor
    version: int
    into: torch.Tensor | None


class MemoryReferee(Referee):
    """The referee of a challenge in which each rank has a device with too little memory."""

    def _accelerators(self, seed: bytes) -> list[DeviceMemory]:
        challenge = self.challenge
        self.stages = stages_of(challenge)
        weights = [
            _start(stage, tasks.stream(seed, f"weights {number}"))
            for number, stage in enumerate(self.stages)
        ]
        self.given = [torch.full_like(stage_weights, torch.nan) for stage_weights in weights]
        self.under_way: list[dict[int, UnderWay]] = [{} for _ in range(challenge.ranks)]
        devices = [
            DeviceMemory(
                rank,
                self.stages,
                weights,
                self.task.train,
                challenge.batch_size,
                challenge.memory_bytes,
            )
            for rank in range(challenge.ranks)
        ]
        for device in devices:
            device.clock_s = partial(self._clock_s, device.rank)
        return devices

    def _clock_s(self, rank: int) -> float:
        return self.network.clock_s[rank]

    def order(self) -> OfModel:
        """What each rank is told of the model."""
        return {
            "sizes": self.accelerators[0].sizes,
            "batch_size": self.challenge.batch_size,
            "activation": tasks.PLACES * self.challenge.layers[0],
            "most_batches": self.challenge.most_batches,
        }

    async def _answer(
        self, rank: int, head: dict[str, Any], payload: bytes | bytearray
    ) -> Answer | None:
        device, do = self.accelerators[rank], head["do"]
        if do in ("take", "gradient"):
            raise ValueError(do)
        if do == "forward":
            out, loss, activations = device.forward(
                *(head[name] for name in ("stage", "weights", "x", "batch", "begin", "end", "keep"))
            )
            self.network.compute(rank, self._seconds(head["end"] - head["begin"]))
            return ({"out": out, "loss": loss, "kept": activations},)
        if do == "backward":
            out, rows = device.backward(head["kept"], head["slopes"], head["into"])
            self.network.compute(rank, 2 * self._seconds(rows))
            return ({"out": out},)
        if do in FREE:
            return ({"out": getattr(device, do)(*head["values"])},)
        if do == "free":
            device.let_go(head["array"])
            return None  # no rank waits for an answer
        if do == "give":
            self._give(rank, head["stage"], head["begin"], device.array(head["array"]))
            return ({},)
        if do == "start" and "array" in head:
            await self._carry(rank, head)
            return None
        if do == "wait" and head["id"] in self.under_way[rank]:
            return await self._arrive(rank, head)
        return await super()._answer(rank, head, payload)

    async def _carry(self, rank: int, head: dict[str, Any]) -> None:
        """Start a message from one array to another one, which may be the same.

        A send has no second one.
        """
        device = self.accelerators[rank]
        array, into = (
            device.array(head["array"]),
            None if head["into"] is None else device.array(head["into"]),
        )
        if (into is None) != (head["call"] == "send"):
            raise ValueError(head["call"])
        await super()._answer(rank, {**head, "dtype": "float32"}, array.numpy().tobytes())
        place = device.keep("under way", [array] if into is None else [array, into])
        self.under_way[rank][head["id"]] = UnderWay(place, array, array._version, into)

    async def _arrive(self, rank: int, head: dict[str, Any]) -> Answer:
        answer, data = await self._wait(rank, head)
        place, array, version, into = self.under_way[rank].pop(head["id"])
        if array._version != version:
            raise RefusedError(
                f"Rank {rank}: an array was changed between the start of a message and its wait."
            )
        if into is not None:
            came = (
                torch.frombuffer(bytearray(data), dtype=torch.float32) if data else torch.empty(0)
            )
            if came.shape != into.shape:
                raise RefusedError(
                    f"Rank {rank}: {came.numel()} elements came, and there is room for "
                    f"{into.numel()}."
                )
            into.copy_(came)
        self.accelerators[rank].free(place)
        return (answer,)

    def _seconds(self, rows: int) -> float:
        return self.challenge.call_s + rows * self.challenge.row_s

    def _give(self, rank: int, stage: int, begin: int, array: torch.Tensor) -> None:
        """A rank gives a part of the trained weights."""
        if not isinstance(stage, int) or not 0 <= stage < len(self.given):
            raise ValueError(stage)
        place = self.given[stage][begin : begin + len(array)]
        if not isinstance(begin, int) or begin < 0 or len(place) != len(array):
            raise RefusedError(f"Rank {rank} gives more weights than stage {stage} has.")
        there = ~place.isnan()
        if not torch.equal(place[there], array[there]):
            raise RefusedError(
                f"Rank {rank} gives different weights of stage {stage} from another rank."
            )
        place.copy_(array)

    def _take_weights(self, rank: int, payload: bytes | bytearray) -> None:
        self.weights[rank] = b"given"

    def result(self) -> Run:
        """The `Run` of what the ranks have given."""
        for rank, device in enumerate(self.accelerators):
            device.most_bytes = most_at_once(device.history, self.network.stored[rank])
            problem = self._too_much(rank, device.most_bytes)
            if problem:
                return Run(problem)
        for number, weights in enumerate(self.given):
            if weights.isnan().any():
                missing = int(weights.isnan().sum())
                return Run(
                    f"Of stage {number}, {missing} of {len(weights)} weights were not given, or are"
                    " not numbers."
                )
        x = self.task.test[:, :-1]
        with torch.no_grad():
            for stage, weights in zip(self.stages, self.given, strict=True):
                torch.nn.utils.vector_to_parameters(weights, stage.parameters())
                x = stage(x)
        right = x.argmax(-1)[:, tasks.BACK - 1 :] == self.task.test[:, tasks.BACK :]
        return Run(
            accuracy=right.float().mean().item(),
            clock_s=max(self.network.clock_s),
            gradients=tuple(device.gradients for device in self.accelerators),
            messages=tuple(self.network.messages),
            sent_bytes=tuple(self.network.sent_bytes),
            most_bytes=tuple(device.most_bytes for device in self.accelerators),
        )

    def _too_much(self, rank: int, most_bytes: int) -> str:
        lost = self.network.not_received(rank)
        if lost:
            return f"Rank {rank} has sent {lost} bytes that no rank has received."
        if most_bytes > self.challenge.memory_bytes:
            return (
                f"Rank {rank} is out of memory: with what it had sent before its receiver asked for"
                f" it, it holds {most_bytes} bytes, and has {self.challenge.memory_bytes}."
            )
        return ""


def most_at_once(
    history: Iterable[tuple[float, int]], stored: Iterable[tuple[float, float, int]]
) -> int:
    """The most bytes that a device held at a time.

    `history` is [(since when, bytes), ...]. What was `stored` on the way from the device counts as
    well, [(from when, until when, bytes), ...].
    """
    events = [(begin, 2, size) for begin, end, size in stored if end > begin]
    events += [(end, 0, -size) for begin, end, size in stored if end > begin]
    events += [(when, 1, held) for when, held in history]
    most = level = more = 0
    for _, kind, size in sorted(events, key=lambda event: event[:2]):
        level, more = (size, more) if kind == 1 else (level, more + size)
        most = max(most, level + more)
    return most


def stages_of(challenge: Challenge) -> list[GPT]:
    """The small GPT in as many stages as there are ranks.

    Its width and heads are the challenge's layers.
    """
    (width, heads), ranks = challenge.layers, challenge.ranks
    return [GPT(stage, ranks, width, heads, ranks, torch.float32) for stage in range(ranks)]


def _start(stage: GPT, draw: np.random.Generator) -> torch.Tensor:
    """Initial weights.

    Matrices are normal with the size of their inputs, the rest is as the layers have it.
    """
    return torch.cat(
        [
            (
                torch.from_numpy(
                    draw.normal(0, parameter.shape[1] ** -0.5, tuple(parameter.shape))
                ).float()
                if parameter.ndim == 2
                else parameter.detach()
            ).flatten()
            for parameter in stage.parameters()
        ]
    )

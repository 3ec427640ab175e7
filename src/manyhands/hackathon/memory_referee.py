"""The referee of a challenge whose model does not fit: each rank has a `DeviceMemory`, and asks for what happens in it.

Its network carries arrays from one memory to another; what is under way is not counted to any of them.
"""

import torch

from manyhands.gpt.transformer import GPT
from manyhands.hackathon import tasks
from manyhands.hackathon.device_memory import DeviceMemory
from manyhands.hackathon.network import Refused
from manyhands.hackathon.referee import Referee, Run

FREE = ("weights", "zeros", "adam", "add", "scale")  # calls that take no time on the clock


class MemoryReferee(Referee):
    def _accelerators(self, seed):
        challenge = self.challenge
        self.stages = stages_of(challenge)
        weights = [_start(stage, tasks.stream(seed, f"weights {number}")) for number, stage in enumerate(self.stages)]
        self.given = [torch.full_like(one, torch.nan) for one in weights]
        return [DeviceMemory(rank, self.stages, weights, self.task.train, challenge.batch_size, challenge.memory_bytes)
                for rank in range(challenge.ranks)]

    def order(self):
        return {"sizes": self.accelerators[0].sizes, "batch_size": self.challenge.batch_size,
                "activation": tasks.PLACES * self.challenge.layers[0], "most_batches": self.challenge.most_batches}

    async def _answer(self, rank, head, payload):
        device, do = self.accelerators[rank], head["do"]
        if do in ("take", "gradient"):
            raise ValueError(do)
        if do == "forward":
            out, loss, kept = device.forward(*(head[name] for name in (
                "stage", "weights", "x", "batch", "begin", "end", "keep")))
            self.network.compute(rank, self._seconds(head["end"] - head["begin"]))
            return ({"out": out, "loss": loss, "kept": kept},)
        if do == "backward":
            out, rows = device.backward(head["kept"], head["slopes"], head["into"])
            self.network.compute(rank, 2 * self._seconds(rows))
            return ({"out": out},)
        if do in FREE:
            return ({"out": getattr(device, do)(*head["values"])},)
        if do == "free":
            return device.free(head["array"])  # nobody waits for an answer
        if do == "give":
            self._give(rank, head["stage"], head["begin"], device.array(head["array"]))
            return ({},)
        if do == "start" and "array" in head:
            payload = device.array(head["array"]).numpy().tobytes()
        if do == "wait" and "into" in head:
            answer, data = await super()._answer(rank, head, payload)
            into, came = device.array(head["into"]), torch.frombuffer(bytearray(data), dtype=torch.float32)
            if answer["dtype"] != "float32" or came.shape != into.shape:
                raise Refused(f"Rank {rank}: {came.numel()} elements came, and there is room for {into.numel()}.")
            into.copy_(came)
            return (answer,)
        return await super()._answer(rank, head, payload)

    def _seconds(self, rows):
        return self.challenge.call_s + rows * self.challenge.row_s

    def _give(self, rank, stage, begin, array):
        """A rank gives a part of the trained weights."""
        if not isinstance(stage, int) or not 0 <= stage < len(self.given):
            raise ValueError(stage)
        place = self.given[stage][begin:begin + len(array)]
        if not isinstance(begin, int) or begin < 0 or len(place) != len(array):
            raise Refused(f"Rank {rank} gives more weights than stage {stage} has.")
        there = ~place.isnan()
        if not torch.equal(place[there], array[there]):
            raise Refused(f"Rank {rank} gives other weights of stage {stage} than another rank.")
        place.copy_(array)

    def _take_weights(self, rank, payload):
        self.weights[rank] = b"given"

    def result(self):
        for number, one in enumerate(self.given):
            if one.isnan().any():
                missing = int(one.isnan().sum())
                return Run(f"Of stage {number}, {missing} of {len(one)} weights were not given, or are no numbers.")
        x = self.task.test[:, :-1]
        with torch.no_grad():
            for stage, one in zip(self.stages, self.given, strict=True):
                torch.nn.utils.vector_to_parameters(one, stage.parameters())
                x = stage(x)
        right = x.argmax(-1)[:, tasks.BACK - 1:] == self.task.test[:, tasks.BACK:]
        return Run(accuracy=right.float().mean().item(), clock_s=max(self.network.clock_s),
                   gradients=tuple(one.gradients for one in self.accelerators), messages=tuple(self.network.messages),
                   sent_bytes=tuple(self.network.sent_bytes),
                   most_bytes=tuple(one.most_bytes for one in self.accelerators))


def stages_of(challenge):
    """The small GPT in as many stages as there are ranks; its width and heads are the challenge's layers."""
    (width, heads), ranks = challenge.layers, challenge.ranks
    return [GPT(stage, ranks, width, heads, ranks, torch.float32) for stage in range(ranks)]


def _start(stage, draw):
    """Initial weights: matrices normal with the size of their inputs, the rest as the layers have it."""
    return torch.cat([
        (torch.from_numpy(draw.normal(0, one.shape[1]**-0.5, tuple(one.shape))).float() if one.ndim == 2 else
         one.detach()).flatten() for one in stage.parameters()])

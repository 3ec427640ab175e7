"""An accelerator with its own memory, which the judge has.

The memory has arrays, what a forward keeps for its backward, and a limit in bytes.

An entry's rank holds numbers of arrays only, never what is in them. So what a rank has is counted
where it cannot be reached, to the byte, and more than the limit is never there. A storage counts
once, whoever holds it: arrays, and what autograd has saved. What a call needs while it runs does
not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.func import functional_call

from manyhands.gpt.transformer import loss_of
from manyhands.hackathon.judge.network import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manyhands.gpt.transformer import GPT, Block


MOST_ARRAYS = 10_000
ADAM_DECAY, ADAM_LEAST = (0.9, 0.95), 1e-8


@dataclass
class Kept:
    """What a forward keeps: the graph behind `out`, from the leaves `weights` and `x`."""

    out: torch.Tensor = field(init=False)
    weights: torch.Tensor
    x: torch.Tensor | None
    rows: int
    saved: list[torch.Tensor] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)  # of the leaves, as they were then

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The tensors of which a backward computes gradients."""
        return [self.weights] if self.x is None else [self.weights, self.x]


What = torch.Tensor | Kept | str  # an array, what a forward keeps, or why arrays are kept


class DeviceMemory:
    """A rank's device.

    `stages` are the parts of the model (for the shapes only); `symbols` are the data, [samples,
    places + 1]; `weights` the flat initial weights of each stage.
    """

    def __init__(
        self,
        rank: int,
        stages: list[GPT],
        weights: list[torch.Tensor],
        symbols: torch.Tensor,
        batch_size: int,
        limit_bytes: int,
    ) -> None:
        self.rank, self.stages, self.start, self.symbols = rank, stages, weights, symbols
        self.batch_size, self.limit_bytes = batch_size, limit_bytes
        self.held: dict[int, tuple[What, list[int]]] = {}  # number: (what, its storages)
        self.most_bytes, self.gradients = 0, 0
        self._storages: dict[int, tuple[int, int]] = {}  # place: (users, bytes)
        self._bytes, self._next = 0, 0
        # of each moment when it changed: (clock, bytes held)
        self.history: list[tuple[float, int]] = []
        self.clock_s: Callable[[], float] = lambda: 0.0

    # ------------------------------------------------------------ arrays

    def keep(self, what: What, tensors: Iterable[torch.Tensor]) -> int:
        """The number of what is kept from now on; `RefusedError` if its tensors find no room."""
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in tensors
        }
        more = sum(size for place, size in storages.items() if place not in self._storages)
        if self._bytes + more > self.limit_bytes:
            arrays = sum(
                _bytes(tensor)
                for tensor, _ in self.held.values()
                if isinstance(tensor, torch.Tensor)
            )
            raise RefusedError(
                f"Rank {self.rank} is out of memory: it holds {self._bytes} bytes ({arrays} in "
                f"arrays, the rest for backward), wants {more} more, and has {self.limit_bytes}."
            )
        for place, size in storages.items():
            users, _ = self._storages.get(place, (0, 0))
            self._storages[place] = users + 1, size
        self._count(more)
        self.most_bytes = max(self.most_bytes, self._bytes)
        self._next += 1
        if len(self.held) == MOST_ARRAYS:
            raise RefusedError(f"Rank {self.rank} has more than {MOST_ARRAYS} arrays.")
        self.held[self._next] = what, list(storages)
        return self._next

    def array(self, number: int) -> torch.Tensor:
        """The tensor of an array that this rank has; raises TypeError for what is no array."""
        tensor, _ = self.held[number]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(number)
        return tensor

    def free(self, number: int) -> None:
        """Give an array back; its bytes are free when nothing else uses them."""
        _, places = self.held.pop(number)
        for place in places:
            users, size = self._storages.pop(place)
            if users > 1:
                self._storages[place] = users - 1, size
            else:
                self._count(-size)

    def let_go(self, number: int) -> None:
        """The entry names this array, or what a forward kept, no more."""
        if not isinstance(self.held[number][0], (torch.Tensor, Kept)):
            raise TypeError(number)
        self.free(number)

    def _count(self, more: int) -> None:
        self._bytes += more
        now = self.clock_s()
        # the most at a time is enough
        if len(self.history) > 1 and self.history[-2][0] == self.history[-1][0] == now:
            self.history[-2:] = [(now, max(self.history[-2][1], self.history[-1][1]))]
        self.history.append((now, self._bytes))

    def new(self, tensor: torch.Tensor) -> int:
        """Keep a tensor as a new array; returns its number."""
        return self.keep(tensor, [tensor])

    def weights(self, stage: int, begin: int, end: int) -> int:
        """A part of a stage's initial weights."""
        return self.new(
            self.start[_index(stage, len(self.stages))][
                _part(begin, end, self.sizes[stage])
            ].clone()
        )

    @property
    def sizes(self) -> list[int]:
        """How many numbers the weights of each stage have."""
        return [len(weights) for weights in self.start]

    def zeros(self, count: int) -> int:
        """Make an array of zeros; returns its number."""
        if not 0 <= count <= self.limit_bytes:
            raise ValueError(count)
        return self.new(torch.zeros(count))

    # ------------------------------------------------------------ computing

    def forward(
        self, stage: int, weights: int, x: Any, batch: int, begin: int, end: int, keep: bool
    ) -> tuple[int | None, float | None, int | None]:
        """(number of what comes out, the loss, number of what is kept).

        The loss exists in the last stage only, otherwise it is None.
        """
        module, leaf = self.stages[_index(stage, len(self.stages))], self.array(weights).detach()
        if leaf.shape != (self.sizes[stage],):
            raise RefusedError(
                f"Rank {self.rank}: stage {stage} has {self.sizes[stage]} weights; {leaf.numel()} "
                "came."
            )
        rows = self._rows(batch, begin, end)
        given = None if module.first else self.array(x).detach()
        if given is not None:
            block = cast("Block", module.blocks[next(iter(module.blocks))])
            wide = block.norm1.normalized_shape[0]
            given = given.view(len(rows), rows.shape[1] - 1, wide)
        given = None if given is None else given.requires_grad_(keep)
        activations = Kept(leaf.requires_grad_(keep), given, len(rows))

        def save(tensor: torch.Tensor) -> torch.Tensor:
            activations.saved.append(tensor)
            return tensor

        with (
            torch.set_grad_enabled(keep),
            torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor),
        ):
            out = functional_call(
                module, _named(module, leaf), (rows[:, :-1] if module.first else given,)
            )
            if module.last:
                out = loss_of(out, rows[:, 1:])
        activations.out, activations.versions = out, [leaf._version for leaf in activations.leaves]
        # weights too: they are needed until the backward
        number = self.keep(activations, activations.saved) if keep else None
        if module.last:
            return None, out.item(), number
        return self.new(out.detach().flatten()), None, number

    def backward(self, number: int, slopes: int | None, into: int) -> tuple[int | None, int]:
        """(number of the gradient of what went in, None in the first stage; the rows).

        That of the weights is added to `into`; what was kept is let go.
        """
        activations, _ = self.held[number]
        total = self.array(into)
        if not isinstance(activations, Kept) or total.shape != activations.weights.shape:
            raise ValueError(number)
        self.gradients += 1
        above, leaves = (
            None if slopes is None else self.array(slopes).view_as(activations.out),
            activations.leaves,
        )
        # where hooks save, autograd does not look
        if [leaf._version for leaf in leaves] != activations.versions:
            raise RefusedError(
                f"Rank {self.rank}: weights, or what went into a stage, were changed between "
                "forward and backward."
            )
        gradients = torch.autograd.grad(activations.out, leaves, above)
        total += gradients[0]
        self.free(number)
        return (
            None if activations.x is None else self.new(gradients[1].flatten())
        ), activations.rows

    def adam(
        self, weights: int, slopes: int, first: int, second: int, step: int, rate: float
    ) -> None:
        """A step of Adam (Kingma and Ba 2015), each array in its place."""
        w, slope, mean, square = map(self.array, (weights, slopes, first, second))
        if not w.shape == slope.shape == mean.shape == square.shape or not 1 <= step < 10**6:
            raise ValueError(step)
        mean.lerp_(slope, 1 - ADAM_DECAY[0])
        square.lerp_(slope.square(), 1 - ADAM_DECAY[1])
        unbiased = (square / (1 - ADAM_DECAY[1] ** step)).sqrt_().add_(ADAM_LEAST)
        w.addcdiv_(mean, unbiased, value=-float(rate) / (1 - ADAM_DECAY[0] ** step))

    def add(self, one: int, other: int, times: float) -> None:
        """Add `times` the other array to one, in place."""
        self.array(one).add_(self.array(other), alpha=float(times))

    def scale(self, one: int, times: float) -> None:
        """Multiply an array by a number, in place."""
        self.array(one).mul_(float(times))

    def _rows(self, batch: int, begin: int, end: int) -> torch.Tensor:
        if not isinstance(batch, int) or not 0 <= batch < len(self.symbols) // self.batch_size:
            raise RefusedError(f"Rank {self.rank} asked for a batch that does not exist.")
        rows = _part(begin, end, self.batch_size)
        if rows.start == rows.stop:
            raise RefusedError(f"Rank {self.rank} called forward without any rows.")
        return self.symbols[batch * self.batch_size : (batch + 1) * self.batch_size][rows].clone()


def _named(module: GPT, flat: torch.Tensor) -> dict[str, torch.Tensor]:
    named = [
        (name, parameter.shape, parameter.numel()) for name, parameter in module.named_parameters()
    ]
    parts = flat.split([count for *_, count in named])
    return {name: part.view(shape) for (name, shape, _), part in zip(named, parts, strict=True)}


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _index(number: int, count: int) -> int:
    if not isinstance(number, int) or not 0 <= number < count:
        raise ValueError(number)
    return number


def _part(begin: int, end: int, count: int) -> slice:
    if not isinstance(begin, int) or not isinstance(end, int) or not 0 <= begin <= end <= count:
        raise ValueError((begin, end))
    return slice(begin, end)

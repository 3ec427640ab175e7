"""What unit 13's experiments compare with, on the ranks.

These are the right values and the values that known mistakes give. All values are in float64, so
that every difference is a mistake and not rounding.
"""

from __future__ import annotations

import random
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import conv2d

from manyhands.checks.by_hand import closed, loaded
from manyhands.checks.on_ranks import UnwrittenError
from manyhands.checks.rank_tools import device
from manyhands.data import shard
from manyhands.links import conjugate, parallel_conv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from manyhands.checks.channel_parallel.answers import Result
    from manyhands.comm.communicator import Communicator

# global ranks of the communicators that the learner's functions are given
GROUPS: tuple[tuple[int, ...], ...] = ((0, 1, 2, 3), (0, 2, 3), (1, 3))
TIMEOUT_S = 8.0


OURS = (
    conjugate.copy_to_ranks,
    conjugate.sum_over_ranks,
    conjugate.split_channels,
    conjugate.gather_channels,
    conjugate._Copy.forward,
    conjugate._Sum.forward,
    conjugate._Split.forward,
    conjugate._Gather.forward,
    parallel_conv.ParallelConv2d.forward,
    parallel_conv._shard,
)  # the package's own layers
FRAMEWORKS = (
    "torch.distributed.tensor:DTensor.from_local",
    "torch.distributed.tensor:distribute_tensor",
)


@contextmanager
def communicators() -> Iterator[list[tuple[tuple[int, ...], Communicator]]]:
    """Give [(members, communicator)] of the groups that this rank is in.

    All ranks must call this.
    """
    from manyhands import comm

    with comm.create_communicator(timeout_s=TIMEOUT_S) as world:
        world.barrier()
        groups = []
        for members in GROUPS:
            group = world.split(0 if world.rank in members else None)
            if group is not None:
                groups.append((members, group))
        try:
            with closed(*OURS, *loaded(*FRAMEWORKS)):
                yield groups
        except NotImplementedError as error:
            # a stub that another function of the learner has called
            *_, (frame, _) = traceback.walk_tb(error.__traceback__)
            raise UnwrittenError(
                frame.f_code.co_qualname
            ) from error  # of three forwards, which one


class Traffic:
    """Count what this rank sends inside the block, as `sent` = [bytes, messages]."""

    def __enter__(self) -> Self:
        from manyhands.ledger import Ledger

        self._ledger = Ledger()
        self._ledger.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._ledger.__exit__(*exception)
        self.sent = [self._ledger.bytes_sent, self._ledger.messages_sent]


class Case:
    """A layer, an image and a loss, drawn from the seed and the same on every rank.

    `split` is the split that is tested.
    """

    def __init__(self, seed: int, split: str, size: int, number: int) -> None:
        draw = random.Random(f"{seed} {split} {size} {number}")
        # neither can be divided by size
        few, many = size + draw.randint(1, size - 1), 2 * size + draw.randint(1, size - 1)
        self.split, self.size = split, size
        self.c_in, self.c_out = (many, few) if split == "in" else (few, many)
        self.stride, self.padding = ((1, 0), (2, 1))[number % 2]
        self.height, self.width = draw.randint(6, 7), draw.randint(8, 9)
        chance = torch.Generator().manual_seed(draw.randrange(2**31))
        self.x = torch.randn(
            2, self.c_in, self.height, self.width, generator=chance, dtype=torch.float64
        ).to(device())
        self.weight = (
            torch.randn(self.c_out, self.c_in, 3, 3, generator=chance, dtype=torch.float64).to(
                device()
            )
            / 4
        )
        self.bias = (
            None
            if number % 2
            else torch.randn(self.c_out, generator=chance, dtype=torch.float64).to(device())
        )
        self.y = self.of(self.x, self.weight, self.bias)
        # dL/dy of the replicated loss
        self.slope = torch.randn(self.y.shape, generator=chance, dtype=torch.float64).to(device())

    def of(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Return the output of the layer, without any split."""
        return conv2d(x, weight, bias, self.stride, self.padding)

    def rows(self, rank: int) -> slice:
        """Return the output channels of a rank."""
        return shard(self.c_out, rank, self.size)

    def columns(self, rank: int) -> slice:
        """Return the input channels of a rank."""
        return shard(self.c_in, rank, self.size)

    def pieces(self, rank: int) -> list[Any]:
        """Return (x, weight, bias) of one rank, as the learner's function gets them.

        They are leaves that require a gradient.
        """
        if self.split == "out":
            given = (
                self.x,
                self.weight[self.rows(rank)],
                None if self.bias is None else self.bias[self.rows(rank)],
            )
        else:
            given = self.x[:, self.columns(rank)], self.weight[:, self.columns(rank)], self.bias
        return [None if tensor is None else tensor.clone().requires_grad_() for tensor in given]

    def serial(self, rank: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return the right gradients of this rank's pieces.

        They are cut out of the whole layer's gradients.
        """
        whole: list[Any] = [
            None if tensor is None else tensor.clone().requires_grad_()
            for tensor in (self.x, self.weight, self.bias)
        ]
        self.of(*whole).backward(self.slope)
        gradients: list[Any] = [None if tensor is None else tensor.grad for tensor in whole]
        x, weight, bias = gradients
        if self.split == "out":
            return x, weight[self.rows(rank)], None if bias is None else bias[self.rows(rank)]
        return x[:, self.columns(rank)], weight[:, self.columns(rank)], bias

    def grouped(self) -> torch.Tensor:
        """Return the output if each rank convolves only its own input channels.

        They contribute only to the rank's own output channels.
        """
        ranks = range(self.size)
        parts = [
            self.of(self.x[:, self.columns(r)], self.weight[self.rows(r), self.columns(r)], None)
            for r in ranks
        ]
        return torch.cat(parts, 1) + self.shown_bias()

    def shown_bias(self) -> torch.Tensor | int:
        """Return the bias in the shape in which it is added to an output, or 0."""
        return 0 if self.bias is None else self.bias[:, None, None]


def lookalikes(case: Case, rank: int) -> dict[str, torch.Tensor | None]:
    """Return {mistake: the output that it gives}, the most specific first."""
    bias, mine = case.shown_bias(), case.pieces(rank)
    own = case.of(*mine).detach()
    outputs: dict[str, torch.Tensor | None] = {
        "grouped": case.grouped(),
        "own part": own,
        "mean": case.y / case.size,
    }
    if case.split == "in":
        outputs["mean"] = (case.y - bias) / case.size + bias
        if case.bias is not None:
            outputs |= {"bias on each": case.y + (case.size - 1) * bias, "no bias": case.y - bias}
    else:
        parts = [case.y[:, case.rows(r)] for r in range(case.size)]
        outputs |= {
            "dealt": dealt(parts),
            "reversed": torch.cat(parts[::-1], 1),
            "own first": own_first(parts, rank),
        }
    return outputs


def dealt(parts: list[torch.Tensor]) -> torch.Tensor | None:
    """Join the parts as if channels 0, N, 2N, ... belonged to rank 0."""
    whole = torch.cat(parts, 1).clone()
    for rank, part in enumerate(parts):
        place = whole[:, rank :: len(parts)]
        if place.shape != part.shape:
            return None
        whole[:, rank :: len(parts)] = part
    return whole


def own_first(parts: list[torch.Tensor], rank: int) -> torch.Tensor:
    """Join the parts in an order that differs between ranks."""
    return torch.cat([parts[rank], *parts[:rank], *parts[rank + 1 :]], 1)


def wrong_gradients(case: Case, rank: int) -> list[dict[str, torch.Tensor]]:
    """Return {mistake: the gradient that it gives} for x, weight and bias."""
    right = case.serial(rank)
    gradients: list[dict[str, torch.Tensor]] = []
    own = case.pieces(rank)
    slope = case.slope[:, case.rows(rank)] if case.split == "out" else case.slope
    case.of(*own).backward(slope)
    for gradient, alone in zip(right, own, strict=True):
        if gradient is None:
            gradients.append({})
            continue
        partial = (
            {}
            if alone is None or same(alone.grad, gradient)
            else {"partial": alone.grad, "partial, times": alone.grad * case.size}
        )
        gradients.append(
            {"times": gradient * case.size, "divided": gradient / case.size, **partial}
        )
    return gradients


def same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Return whether both are tensors, of the same shape and with nearly the same numbers."""
    return (
        a is not None
        and b is not None
        and a.shape == b.shape
        and torch.allclose(a, b, rtol=1e-9, atol=1e-9)
    )


def compare(
    name: str,
    got: Any,
    right: torch.Tensor,
    wrong: Mapping[str, torch.Tensor | None] | tuple[()] = (),
) -> Result:
    """Return one comparison as plain data.

    It has whether the value is right, a sample as evidence, and which of the `wrong` values it
    looks like.
    """
    if not isinstance(got, torch.Tensor):
        return {
            "name": name,
            "right": False,
            "looks": "nothing" if got is None else "no tensor",
            "sample": [],
            "wanted": sample(right),
        }
    got = got.detach()
    if got.dtype != right.dtype:
        return {
            "name": name,
            "right": False,
            "looks": "dtype",
            "sample": [str(got.dtype)],
            "wanted": [str(right.dtype)],
        }
    looks = next(
        (mistake for mistake, value in dict(wrong).items() if same(got, value)),
        "shape" if got.shape != right.shape else "other",
    )
    return {
        "name": name,
        "right": same(got, right),
        "looks": looks,
        "sample": sample(got),
        "wanted": sample(right),
        "shape": list(got.shape),
        "wanted shape": list(right.shape),
        "differ": differ(got, right),
    }


def differ(got: torch.Tensor, right: torch.Tensor) -> list[Any] | None:
    """Return where a tensor begins to be wrong, or None if all is right.

    It is [indices of the first wrong number, it and the two after it, the right numbers there].
    """
    if got.shape != right.shape or same(got, right):
        return None
    wrong = (~torch.isclose(got, right, rtol=1e-9, atol=1e-9)).flatten().nonzero()
    first = wrong[0].item()
    place = [int(index) for index in torch.unravel_index(torch.tensor(first), got.shape)]
    return [place, *(tensor.flatten()[first : first + 3].tolist() for tensor in (got, right))]


def sample(tensor: torch.Tensor) -> list[float]:
    """Return a few numbers by which a tensor can be recognised.

    They differ from those of a tensor with the same values in a different order.
    """
    flat = tensor.detach().double().flatten().cpu()
    return [
        *flat[:3].tolist(),
        flat.sum().item(),
        (flat * torch.arange(1, 1 + flat.numel()).double().sin()).sum().item(),
    ]


def usable(output: Any, right: torch.Tensor, c: Communicator) -> bool:
    """Return whether backward can start from the output of every rank.

    If it cannot on one of them, some ranks would wait for others in vain.
    """
    fine = isinstance(output, torch.Tensor) and output.requires_grad and output.shape == right.shape
    return all(c.allgather_obj(bool(fine)))


def detached(output: Any) -> bool:
    """Return whether an output is a tensor without a graph."""
    return isinstance(output, torch.Tensor) and not output.requires_grad

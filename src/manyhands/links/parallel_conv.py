"""A dense convolution whose channels are shared out over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import nn

from manyhands import functions
from manyhands.links import conjugate
from manyhands.links.shared_communicator import SharesCommunicator

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator

Size = int | tuple[int, int]
PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]
Split = Literal["out", "in"]
Loss = Literal["replicated", "summed"]


class ParallelConv2d(SharesCommunicator, nn.Module):
    """An `nn.Conv2d` of which each rank has the weights for its share of the channels.

    These are output channels (`split="out"`) or input channels (`split="in"`).

        conv = links.ParallelConv2d(c, 3, 64, 3, padding=1, split="out")
        y = conv(x)                                        # x and y: all channels, the same on every rank

    Every output channel sees every input channel: this is not the grouped convolution in which each
    rank keeps to its own channels. in_channels, out_channels: of the whole layer; any numbers that
    are at least the number of ranks. The first ranks have one channel more where the division
    leaves a rest. Other arguments: as in nn.Conv2d, without groups. Forward: "out": each rank
    computes its output channels, and all gather them (all-gather of y). "in": each rank computes
    what its input channels add to every output channel, and the parts are summed (all-reduce of y).
    The bias is counted once: each of its numbers lies on one rank, those of "in" all on rank 0.
    Backward, `loss="replicated"`: every rank computes the same loss of y. Weights, bias and x get
    the gradients of one process with nn.Conv2d. "out" sums the parts of x's gradient (all-reduce),
    "in" gathers them (all-gather). Source: Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053,
    section 3, operators f and g. Backward, `loss="summed"`: the objective is the sum of all ranks'
    losses, as ChainerMN composes it. Weights and bias then get N times one process's gradient on N
    ranks with equal losses. So does x, if it comes from one rank through `functions.bcast`; x's own
    gradient on one rank is that rank's part. Shapes: x (batch, in_channels, height, width), or
    without batch; y as nn.Conv2d. Who calls: all ranks of `c`, forward and backward. With
    "replicated", x needs a gradient on all ranks or on none. Start values: drawn like those of
    nn.Conv2d, so that with the same seed on all ranks the layer equals the nn.Conv2d of that seed.
    Raises ValueError for fewer channels than ranks, for other values of `split` and `loss`, and for
    an x of another number of channels; CommunicationError if a rank does not take part.
    """

    def __init__(
        self,
        c: Communicator,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        split: Split = "out",
        loss: Loss = "replicated",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check(c, in_channels, out_channels, split, loss)
        self.c, self.in_channels, self.out_channels, self.split, self.loss = (
            c,
            in_channels,
            out_channels,
            split,
            loss,
        )
        self.sizes = share_sizes(out_channels if split == "out" else in_channels, c.size)
        whole = nn.Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            1,
            bias,
            padding_mode,
            device,
            dtype,
        )
        # what is not this rank's is drawn and dropped
        self.shard = _shard(whole, self.sizes, c.rank, split)

    @classmethod
    def from_conv2d(
        cls,
        conv: nn.Conv2d | None,
        c: Communicator,
        split: Split = "out",
        loss: Loss = "replicated",
    ) -> ParallelConv2d:
        """Share out rank 0's `conv`, a dense nn.Conv2d. All ranks of `c` call it.

        On the other ranks `conv` does not count and may be None.
        """
        problem = None
        if c.rank == 0 and (not isinstance(conv, nn.Conv2d) or conv.groups != 1):
            problem = (
                f"from_conv2d takes a dense nn.Conv2d, with groups=1, and got {conv!r} at rank 0."
            )
        settings = c.bcast_obj(None if c.rank else problem or _settings(cast("nn.Conv2d", conv)))
        if isinstance(settings, str):
            raise ValueError(settings)
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        _check(c, settings["in_channels"], settings["out_channels"], split, loss)
        made.c, made.split, made.loss = c, split, loss
        made.in_channels, made.out_channels = settings["in_channels"], settings["out_channels"]
        made.sizes = share_sizes(made.out_channels if split == "out" else made.in_channels, c.size)
        made.shard = c.scatter_obj(
            [_shard(cast("nn.Conv2d", conv), made.sizes, rank, split) for rank in range(c.size)]
            if c.rank == 0
            else None
        )
        return made

    weight = property(lambda self: self.shard.weight, doc="This rank's part of the weight.")
    bias = property(lambda self: self.shard.bias, doc="This rank's part of the bias, or None.")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y, with all output channels on every rank; ValueError for an x of another shape."""
        if x.dim() not in (3, 4) or x.shape[-3] != self.in_channels:
            raise ValueError(
                f"This layer takes x of shape (batch, {self.in_channels}, height, width), "
                f"with all its input channels on every rank, and got {tuple(x.shape)}."
            )
        begin = sum(self.sizes[: self.c.rank])
        if self.split == "out":
            if self.loss == "summed":
                return torch.cat(functions.allgather(self.c, self.shard(x)), -3)
            return conjugate.gather_channels(
                self.c, self.shard(conjugate.copy_to_ranks(self.c, x)), self.sizes
            )
        if self.loss == "summed":
            return functions.allreduce(
                self.c, self.shard(x.narrow(-3, begin, self.sizes[self.c.rank]))
            )
        return conjugate.sum_over_ranks(
            self.c, self.shard(conjugate.split_channels(self.c, x, self.sizes))
        )

    @torch.no_grad()
    def full_weight(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(weight, bias) of the whole layer, on every rank; bias is None if the layer has none.

        All ranks call it; no gradient.
        """
        weight = torch.cat(
            functions.allgather(self.c, self.shard.weight.detach()), 0 if self.split == "out" else 1
        )
        if self.split == "in":
            return weight, self.c.bcast_obj(self.shard.bias if self.c.rank == 0 else None)
        return weight, (
            None
            if self.shard.bias is None
            else torch.cat(functions.allgather(self.c, self.shard.bias.detach()))
        )

    def to_conv2d(self) -> nn.Conv2d:
        """The whole layer as an nn.Conv2d, on every rank. All ranks call it."""
        weight, bias = self.full_weight()
        return _conv(self.shard, weight, bias)

    def extra_repr(self) -> str:
        """The whole layer's channels and this rank's, in the text that `print(layer)` shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, split={self.split!r}, loss={self.loss!r}, "
            f"rank {self.c.rank} has {self.sizes[self.c.rank]} channels"
        )


def share_sizes(channels: int, ranks: int) -> list[int]:
    """How many channels each rank has: as equal as possible, the first ranks one more."""
    return [channels // ranks + (rank < channels % ranks) for rank in range(ranks)]


def _check(c: Communicator, in_channels: int, out_channels: int, split: str, loss: str) -> None:
    if split not in ("in", "out"):
        raise ValueError(
            f'split={split!r}. Take "out" to distribute the output channels, or "in" for the input '
            "channels."
        )
    if loss not in ("replicated", "summed"):
        raise ValueError(
            f'loss={loss!r}. Take "replicated" if every rank computes the same loss of y, '
            '"summed" if the objective is the sum of '
            "all ranks' losses."
        )
    channels = out_channels if split == "out" else in_channels
    if channels < c.size:
        raise ValueError(
            f"{channels} {'output' if split == 'out' else 'input'} channels cannot be distributed "
            f"over {c.size} ranks. Take fewer ranks (c.split), or the other split."
        )


def _settings(conv: nn.Conv2d) -> dict[str, Any]:
    names = (
        "in_channels",
        "out_channels",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "padding_mode",
    )
    return {name: getattr(conv, name) for name in names}


def _conv(like: nn.Conv2d, weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Conv2d:
    """An nn.Conv2d as `like`, with these weights, without drawing random numbers."""
    settings = _settings(like) | {"in_channels": weight.shape[1], "out_channels": weight.shape[0]}
    conv = nn.Conv2d(**settings, bias=bias is not None, device="meta")
    conv.weight = nn.Parameter(weight.detach().clone(), requires_grad=like.weight.requires_grad)
    conv.bias = (
        None
        if bias is None
        else nn.Parameter(
            bias.detach().clone(),
            requires_grad=(like.weight if like.bias is None else like.bias).requires_grad,
        )
    )
    return conv.train(like.training)


def _shard(conv: nn.Conv2d, sizes: Sequence[int], rank: int, split: str) -> nn.Conv2d:
    """The convolution with this rank's channels only."""
    channels = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    if split == "out":
        return _conv(
            conv, conv.weight[channels], None if conv.bias is None else conv.bias[channels]
        )
    return _conv(conv, conv.weight[:, channels], conv.bias if rank == 0 else None)

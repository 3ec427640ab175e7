"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from manyhands import functions
from manyhands.links.shared_communicator import SharesCommunicator

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


class MultiNodeBatchNorm(SharesCommunicator, _BatchNorm):
    """`nn.BatchNorm` whose mean and variance are those of the batches of all ranks together.

    num_features, eps, momentum, affine, track_running_stats: as in `torch.nn.BatchNorm1d`, whose
    state_dict this one shares. Forward: y = (x - mean) / sqrt(var + eps) * weight + bias, as one
    process would compute on the concatenated batch. Every value counts once: a rank's batch may be
    of any size, or empty. Running statistics are the same on all ranks. In evaluation they are
    used, and nothing is communicated, unless `track_running_stats=False`. Backward: the gradient of
    x is that of one process. That of weight and bias is the MEAN over all ranks, the same on each,
    as in ChainerMN: one process's gradient divided by the number of ranks, which an optimizer that
    averages over ranks leaves as it is. Shapes: x is (batch, features), or (batch, features, ...)
    with up to three more dimensions; all but the features may differ from rank to rank. Who calls:
    all ranks of `c`, in training. One message to each other rank forward (4 * features + 1
    numbers), and one backward. Raises ValueError for an x of other shapes, and on all ranks if they
    have together less than two values for a feature; CommunicationError if a rank does not take
    part. Source: Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167, equations of figure 1;
    the variances of the ranks are combined as in Chan, Golub and LeVeque 1983,
    https://doi.org/10.1080/00031305.1983.10483115, equation 2.1, which loses no digits where mean
    and deviation are far apart.
    """

    def __init__(
        self,
        num_features: int,
        c: Communicator,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.c = c

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x normalised over the batches of all ranks; in evaluation, by the running statistics."""
        self._check_input_dim(x)
        if not self.training and self.running_mean is not None:
            normal: torch.Tensor = super().forward(x)
            return normal
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        parameters = [p.to(dtype) for p in (self.weight, self.bias) if p is not None]
        rows = functions.allgather(self.c, torch.cat([_Statistics.apply(x, dtype), *parameters]))
        count, mean, var = self._combine(torch.stack(rows))
        weight, bias = self._with_mean_gradient(rows, parameters, mean)
        if self.training and self.track_running_stats:
            self._remember(count, mean.detach(), var.detach())
        y: torch.Tensor = _Normalise.apply(x, mean, torch.rsqrt(var + self.eps), weight, bias)
        return y

    def _check_input_dim(self, x: torch.Tensor) -> None:
        if not 2 <= x.dim() <= 5 or x.shape[1] != self.num_features:
            raise ValueError(
                f"MultiNodeBatchNorm({self.num_features}) takes x of shape (batch, "
                f"{self.num_features}) with up to three more dimensions, and got {tuple(x.shape)}."
            )

    def _combine(self, rows: torch.Tensor) -> tuple[float, torch.Tensor, torch.Tensor]:
        """Number of values, mean and variance for each feature over all ranks.

        `rows` has one row of `_Statistics` for each rank.
        """
        n = self.num_features
        counts, means, squares = (
            rows[:, :1].detach(),
            rows[:, 1 : n + 1],
            rows[:, n + 1 : 2 * n + 1],
        )
        count = counts.sum().item()
        if count < 2:
            raise ValueError(
                "Training needs at least two values for each feature over all ranks, "
                f"and there are {count:.0f}. Give the ranks larger batches, or call eval()."
            )
        mean = (counts * means).sum(0) / count
        return count, mean, (squares.sum(0) + (counts * (means - mean) ** 2).sum(0)) / count

    def _with_mean_gradient(
        self, rows: Sequence[torch.Tensor], parameters: list[torch.Tensor], like: torch.Tensor
    ) -> Sequence[torch.Tensor]:
        """This rank's weight and bias.

        In backward, each rank's own receive the mean of all ranks' gradients.
        """
        n, parts = self.num_features, []
        for i, own in enumerate(parameters):
            everyones = [row[(2 + i) * n + 1 : (3 + i) * n + 1] for row in rows]
            parts.append(
                own.detach() + sum(part - part.detach() for part in everyones) / self.c.size
            )
        return parts if parts else (torch.ones_like(like), torch.zeros_like(like))

    @torch.no_grad()
    def _remember(self, count: float, mean: torch.Tensor, var: torch.Tensor) -> None:
        """Update the running statistics as nn.BatchNorm does: the variance without bias.

        With momentum=None they are the plain mean of all batches so far.
        """
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        # with track_running_stats, without which nobody calls this, none of the three is None
        batches = cast("torch.Tensor", self.num_batches_tracked)
        running_mean, running_var = (
            cast("torch.Tensor", self.running_mean),
            cast("torch.Tensor", self.running_var),
        )
        share = 1 / batches.item() if self.momentum is None else self.momentum
        running_mean.lerp_(mean.to(running_mean.dtype), share)
        running_var.lerp_((var * (count / (count - 1))).to(running_var.dtype), share)


def _over(x: torch.Tensor) -> list[int]:
    """All dimensions but the features."""
    return [d for d in range(x.dim()) if d != 1]


def _wide(numbers: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """One number for each feature, in a shape that fits x."""
    return numbers.view(1, -1, *[1] * (x.dim() - 2))


class _Statistics(torch.autograd.Function):
    """How many values a feature of a rank's batch has, their means and squared deviations.

    The latter are sums; all are in one vector.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        wide = x.to(dtype)
        count = x.numel() // x.shape[1]
        mean = wide.sum(_over(x)) / max(count, 1)
        ctx.save_for_backward(x, mean)
        ctx.count = count
        return torch.cat(
            [mean.new_tensor([count]), mean, ((wide - _wide(mean, x)) ** 2).sum(_over(x))]
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        x, mean = ctx.saved_tensors
        of_mean, of_squares = grad[1:].view(2, -1)
        return (
            _wide(of_mean / max(ctx.count, 1), x) + _wide(2 * of_squares, x) * (x - _wide(mean, x))
        ).to(x.dtype), None


class _Normalise(torch.autograd.Function):
    """(x - mean) * scale * weight + bias, and the gradients of all five."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        mean: torch.Tensor,
        scale: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
    ) -> torch.Tensor:
        ctx.save_for_backward(x, mean, scale, weight)
        return ((x - _wide(mean, x)) * _wide(scale * weight, x) + _wide(bias, x)).to(x.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, mean, scale, weight = ctx.saved_tensors
        of_bias = grad.to(mean.dtype).sum(_over(x))
        along = (grad * (x - _wide(mean, x))).sum(_over(x))
        of_x = (grad * _wide(scale * weight, x)).to(x.dtype)
        return of_x, -of_bias * scale * weight, along * weight, along * scale, of_bias

"""What the referee itself sees of the second rule.

The rule is that an entry learns from the gradients that it has paid for.

There are two measures, and neither changes anything about a run. The first looks at weights that an
entry has made anew, at which it asks for gradients. In an ordinary network a hidden row adds up
about half of a batch's samples, and no two rows add up nearly the same ones. Weights that are made
for reading differ in just this: the difference of two rows that are active for the same samples but
for one or two gives these samples, and so does a row to which one sample contributes more than all
others together (Fowl et al. 2022, Robbing the Fed; Boenisch et al. 2023, When the curious abandon
honesty).

The second looks at how the loss came down. An entry that trains with gradients asks for them all
the way down, so the losses that the referee has computed leave no large gap. A network that was
trained beside the clock jumps over one.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manyhands.hackathon.judge.referee import Run


# of the hidden rows: honest starts have up to 0.11, weights for reading 0.12 to 1, most of them
# more than 0.2
MOST_TELLING = 0.15
BATCHES = 8  # of which the mean is taken
MOST_GAP = 0.75  # of the loss: the ladders leave up to 0.16, an entry that reads samples 2.2
FEW = 2  # samples by which two rows may differ and still tell of one
# the cosine between two first layers (large rates leave 0.89); of the norm of the last layer
TURNED, LEFT = 0.8, 0.3
FEW_GRADIENTS = 3  # of a rank: too few to read much


class Reading:
    """Watches the weights at which a rank asks for gradients.

    `count` is how many gradients were asked for at weights that tell of single samples.
    """

    def __init__(self) -> None:
        self.count, self._tells = 0, False
        self._before: tuple[torch.Tensor, torch.Tensor] | None = None

    def look(self, model: nn.Sequential, x: torch.Tensor, y: torch.Tensor, batch_size: int) -> None:
        """Before a gradient at the model's weights; `x` and `y` are the rank's data.

        Only weights that do not follow from the last ones are measured, because training itself may
        bring rows close together for a while.
        """
        first, last = (_layer(model, place).weight.detach().clone() for place in (0, -1))
        if self._before is None or _remade(self._before, (first, last)):
            batches = zip(x.split(batch_size)[:BATCHES], y.split(batch_size)[:BATCHES], strict=True)
            self._tells = (
                statistics.mean(telling_share(model, *batch) for batch in batches) > MOST_TELLING
            )
        self._before = first, last
        self.count += self._tells


def _layer(model: nn.Sequential, place: int) -> nn.Linear:
    """The first or the last layer of a challenge's network (`model.network_of`)."""
    return cast("nn.Linear", model[place])


def _remade(
    before: tuple[torch.Tensor, torch.Tensor], now: tuple[torch.Tensor, torch.Tensor]
) -> bool:
    alike = torch.cosine_similarity(before[0].flatten(), now[0].flatten(), dim=0)
    return bool(alike < TURNED or now[1].norm() < LEFT * before[1].norm())


@torch.no_grad()
def telling_share(model: nn.Sequential, x: torch.Tensor, y: torch.Tensor) -> float:
    """The part of the hidden rows that tell of a single sample of a batch.

    They do so by themselves or by their difference from another row.
    """
    first, last = _layer(model, 0), _layer(model, -1)
    before = first(x)
    active = (before > 0).float()
    count = active.sum(0)
    differ = count[:, None] + count - 2 * active.T @ active
    live = count > 0
    near = ((differ > 0.5) & (differ < FEW + 0.5) & live).any(1) & live
    errors = torch.softmax(last(before.relu()), 1) - torch.nn.functional.one_hot(
        y, last.out_features
    )
    # a well-trained network has errors in few samples
    errors /= errors.norm(dim=1, keepdim=True).clamp(min=1e-30)
    # otherwise the square of tiny weights vanishes
    pull = last.weight / last.weight.abs().max().clamp(min=1e-30)
    parts = (errors @ pull * active * x.norm(dim=1, keepdim=True)).square()
    alone = parts.amax(0) > parts.sum(0) / 2
    return (near | alone).float().mean().item()


def largest_gap(losses: Iterable[float], final: float, classes: int) -> float:
    """The largest gap between a loss and the next larger one.

    It is taken over all losses that were asked for and that of the trained weights (`final`), below
    the loss of a network that knows nothing.
    """
    start = math.log(classes)
    finite_losses = sorted(loss for loss in (*losses, final) if math.isfinite(loss))
    pairs = zip(finite_losses, [*finite_losses, start][1:], strict=True)
    return max((min(larger, start) - loss for loss, larger in pairs if loss < start), default=0.0)


def flags(runs: Sequence[Run]) -> list[str]:
    """What a person must look at, a sentence each, of the `Run`s of a judging."""
    telling, gap = (
        max((max(run.telling, default=0) for run in runs), default=0),
        max(run.gap for run in runs),
    )
    sentences = []
    if telling > FEW_GRADIENTS:
        sentences.append(
            f"A rank has asked for {telling} gradients at weights by which single samples can be "
            "read out of a gradient."
        )
    if gap > MOST_GAP:
        sentences.append(
            f"The loss of the trained weights was reached over a gap of {gap:.2f} in which no "
            "gradient was requested, so the network seems to have been trained outside the clock."
        )
    return sentences

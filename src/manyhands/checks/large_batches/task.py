"""The task of unit 17, which is distorted digits with some wrong labels.

Several runs of one small network are trained side by side in this process. A step depends on the
rows of its batch, and not on which rank computes their gradients (unit 01), so one process is
enough to study large batches. The runs differ in their start and in the order of the images. They
are stored side by side, so that every tensor has a leading dimension `runs`, and no run sees
another one. Everything is float64, and drawn with numpy from a seed. torch is imported when it is
needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    Step = Callable[[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor], float], object]


class Digits(NamedTuple):
    """Arrays or tensors: float64 [n, 64], int64 [n], and the same for the test."""

    x: Any
    y: Any
    x_test: Any
    y_test: Any


IMAGES, COPIES, HIDDEN, MOMENTUM, RUNS = 4096, 4, 32, 0.9, 8
EPOCHS, BATCH, RATE, DROPS, DROP_BY = 8, 8, 0.04, (4, 6), 4  # what the small batch is trained with
# degrees, pixels, grey levels from 0 to 1, and the part of the training labels that is drawn anew
TURN, SHIFT, NOISE, WRONG = 12.0, 0.8, 0.05, 0.2
PASSED: list[
    int
] = []  # the size of every batch of which any task took a gradient, which the checks count


class BudgetSpent(RuntimeError):  # noqa: N818 - learners see this name
    """Raised when a task is asked for one more batch than its epochs have."""


def plain_digits() -> Digits:
    """Return the 1500 digits for training and the 297 for testing, minus the mean of each pixel."""
    from manyhands.data import digits

    return _centred(*digits("train"), *digits("test"))


def distorted_digits(seed: int, images: int = IMAGES, copies: int = COPIES) -> Digits:
    """Return distorted digits, as `seed` determines.

    There are `images` distorted copies of training digits, drawn with replacement, and `copies` of
    each test digit. A part WRONG of the training labels is drawn anew, from all ten classes, while
    the test labels are right.
    """
    from manyhands.data import digits

    draw, (x, y), (x_test, y_test) = (
        np.random.default_rng([seed, 17]),
        digits("train"),
        digits("test"),
    )
    chosen = draw.integers(len(x), size=images)
    labels = np.where(draw.random(images) < WRONG, draw.integers(10, size=images), y[chosen])
    return _centred(
        distort(x[chosen], draw),
        labels,
        distort(np.repeat(x_test, copies, axis=0), draw),
        np.repeat(y_test, copies),
    )


def _centred(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> Digits:
    mean = x.mean(0, dtype=float)
    return Digits(x - mean, y, x_test - mean, y_test)


def distort(
    x: np.ndarray,
    draw: np.random.Generator,
    turn: float = TURN,
    shift: float = SHIFT,
    noise: float = NOISE,
) -> np.ndarray:
    """Return images [n, 64], turned and shifted (bilinear), with Gaussian noise.

    They are turned by up to `turn` degrees and shifted by up to `shift` pixels in both directions.
    """
    n = len(x)
    angle, (down, right) = (
        np.deg2rad(draw.uniform(-turn, turn, (n, 1, 1))),
        draw.uniform(-shift, shift, (2, n, 1, 1)),
    )
    row, column = np.mgrid[:8, :8] - 3.5
    padded = np.pad(x.reshape(n, 8, 8).astype(float), ((0, 0), (1, 1), (1, 1)))
    r = np.clip(np.cos(angle) * row - np.sin(angle) * column + 4.5 + down, 0, 8.999)
    c = np.clip(np.sin(angle) * row + np.cos(angle) * column + 4.5 + right, 0, 8.999)
    i, j, k = r.astype(int), c.astype(int), np.arange(n)[:, None, None]
    r, c = r - i, c - j
    upper = (1 - c) * padded[k, i, j] + c * padded[k, i, j + 1]
    lower = (1 - c) * padded[k, i + 1, j] + c * padded[k, i + 1, j + 1]
    return ((1 - r) * upper + r * lower + noise * draw.normal(size=r.shape)).reshape(n, 64)


class Task:
    """Train several runs of a 64-32-10 network (ReLU) on `data`, a batch at a time.

    `gradient(weights)` takes the next `batch` images of every run, each in a separate order, with
    every image once in an epoch. After `epochs` epochs it raises `BudgetSpent`. A caller may ask
    for a different batch size, but a size below `batch` raises a ValueError.
    """

    def __init__(
        self, data: Digits, batch: int, epochs: int = EPOCHS, runs: int = RUNS, seed: int = 0
    ) -> None:
        import torch

        self.data = Digits(*(torch.as_tensor(array) for array in data))
        self.images, self.batch, self.epochs, self.runs, self.seed = (
            len(data.x),
            batch,
            epochs,
            runs,
            seed,
        )
        self.steps = epochs * self.images // batch
        self.seen = 0  # images of each run
        self._order = np.empty((runs, 0), int)
        self._drawn = 0

    def start(self) -> list[torch.Tensor]:
        """Return the weights of all runs.

        They are [runs, 64, 32], [runs, 1, 32], [runs, 32, 10] and [runs, 1, 10].
        """
        import torch

        draw, shapes = (
            np.random.default_rng([self.seed, 1]),
            ((64, HIDDEN), (1, HIDDEN), (HIDDEN, 10), (1, 10)),
        )
        return [
            torch.from_numpy(
                draw.uniform(-1, 1, (self.runs, *shape)) / (64, 64, HIDDEN, HIDDEN)[i] ** 0.5
            )
            for i, shape in enumerate(shapes)
        ]

    def gradient(
        self, weights: Sequence[torch.Tensor], batch: int | None = None
    ) -> list[torch.Tensor]:
        """Return the gradient of the mean loss (cross entropy) of each run's next batch.

        It has the shapes of `weights`.
        """
        rows = self._next(self.batch if batch is None else int(batch))
        x, labels = self.data.x[rows], self.data.y[rows]
        _, _, w2, _ = weights
        hidden, scores = network(weights, x)
        # of the loss by the scores, which is the probabilities, minus 1 for the right class
        slope = scores.softmax(-1)
        slope.scatter_add_(-1, labels[..., None], slope.new_full((*labels.shape, 1), -1.0))
        slope /= rows.shape[1]
        below = slope @ w2.mT * (hidden > 0)
        return [
            x.mT @ below,
            below.sum(1, keepdim=True),
            hidden.mT @ slope,
            slope.sum(1, keepdim=True),
        ]

    def _next(self, batch: int) -> torch.Tensor:
        """Return the rows of the next batch of each run, [runs, batch]."""
        import torch

        if batch < self.batch:
            raise ValueError(
                f"a batch of {batch} is too small, because this task's batches have at least "
                f"{self.batch} images"
            )
        if self.seen + batch > self.epochs * self.images:
            raise BudgetSpent(
                f"{self.epochs} epochs of {self.images} images are used up, so a batch of {batch} "
                "more would be too much"
            )
        while self._order.shape[1] < batch:
            draw = np.random.default_rng([self.seed, 2, self._drawn])
            self._order, self._drawn = (
                np.hstack(
                    [
                        self._order,
                        draw.permuted(np.tile(np.arange(self.images), (self.runs, 1)), axis=1),
                    ]
                ),
                self._drawn + 1,
            )
        rows, self._order = self._order[:, :batch], self._order[:, batch:]
        self.seen += batch
        PASSED.append(batch)
        return torch.from_numpy(np.ascontiguousarray(rows))

    def error(self, weights: Sequence[torch.Tensor], train: bool = False) -> np.ndarray:
        """Return the error of each run in per cent, as a numpy array [runs].

        It is measured on the test images (or on the training images).
        """
        x, y = (self.data.x, self.data.y) if train else (self.data.x_test, self.data.y_test)
        return (
            100
            * (network(weights, x.expand(self.runs, -1, -1))[1].argmax(-1) != y)
            .double()
            .mean(1)
            .numpy()
        )


def network(weights: Sequence[torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs of the hidden units and the scores, for x [runs, rows, 64].

    The former are [runs, rows, 32] and the latter [runs, rows, 10].
    """
    import torch

    w1, b1, w2, b2 = weights
    hidden = torch.baddbmm(b1, x, w1).relu()
    return hidden, torch.baddbmm(b2, hidden, w2)


def train(
    task: Task,
    rate_at: Callable[[float], float],
    batch_at: Callable[[float], int] | None = None,
    step: Step | None = None,
    watch: Callable[[float, list[torch.Tensor]], object] | None = None,
) -> list[torch.Tensor]:
    """Train all runs of `task`, with momentum, and return the weights at the end.

    The training ends when the task's epochs are used up. `rate_at(epoch)` and `batch_at(epoch)` (by
    default the task's batch) are called before each step, where `epoch` counts what was seen, so
    0.5 is the middle of the first one. `step(weights, gradients, memory, rate)` changes weights and
    memory in place. `watch(epoch, weights)` is called before each step and at the end.
    """
    weights, step = task.start(), step or momentum_step
    memory = [weight * 0 for weight in weights]
    while True:
        epoch = task.seen / task.images
        if watch:
            watch(epoch, weights)
        batch = batch_at(epoch) if batch_at else task.batch
        if task.seen + batch > task.epochs * task.images:
            return weights
        step(weights, task.gradient(weights, batch), memory, rate_at(epoch))


def small_rate(epoch: float) -> float:
    """Return the rate of the small batch.

    This is RATE, and DROP_BY times smaller from each of the epochs DROPS on.
    """
    return RATE / DROP_BY ** sum(epoch >= drop for drop in DROPS)


def momentum_step(
    weights: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor],
    memory: Sequence[torch.Tensor],
    rate: float,
) -> None:
    """Take the step v <- m v + rate g, w <- w - v, in place."""
    for weight, gradient, moving in zip(weights, gradients, memory, strict=True):
        moving.mul_(MOMENTUM).add_(gradient, alpha=rate)
        weight.sub_(moving)

"""How the checks of unit 02 judge what they have measured, and which mistakes they recognise.

Every diagnosis is None, or the details of a FAIL line: `expected`, `got` and the likely `mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import by_rank
from manyhands.checks.mirrored_strategy.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.report import Problem

    Place = tuple[str | None, int | None]  # a device's type and number

ATOL = 1e-5


def say(mistake: str, expected: Any = None, got: Any = None, **facts: Any) -> Problem:
    """Return the details of a FAIL line, whose message is filled with `got` and these facts."""
    return {"expected": expected, "got": got, "mistake": MISTAKES[mistake].format(got=got, **facts)}


def near(got: Any, expected: Any, atol: float = ATOL) -> bool:
    """Whether two arrays have the same shape and values, up to `atol` and a relative 1e-5."""
    return np.shape(got) == np.shape(expected) and bool(
        np.all(np.abs(got - expected) <= atol + 1e-5 * np.abs(expected))
    )


def shards(examples: int, n: int) -> list[slice]:
    """Return n slices whose sizes differ by at most one, as np.array_split cuts."""
    ends = np.cumsum([examples // n + (i < examples % n) for i in range(n)])
    return [
        slice(int(end - examples // n - (i < examples % n)), int(end)) for i, end in enumerate(ends)
    ]


def ceil_shards(examples: int, n: int) -> list[slice]:
    """Return n slices of ceil(examples / n), until none are left, as a distributed dataset cuts."""
    share = -(-examples // n)
    return [slice(min(i * share, examples), min((i + 1) * share, examples)) for i in range(n)]


def average(
    what: str,
    got: Any,
    expected: Any,
    parts: Sequence[Any],
    cuts: Sequence[slice],
    examples: int,
    cut_short: np.ndarray | None = None,
    rate: float | None = None,
) -> Problem | None:
    """Judge a mean over the batch against `expected`; `parts` are the means over the shards `cuts`.

    `cut_short` is the mean over as many examples as make equal shards, and `rate` is a learning
    rate that may have slipped in.
    """
    n, sizes = len(cuts), [cut.stop - cut.start for cut in cuts]
    if np.shape(got) != np.shape(expected):
        return say("not a gradient", shape=np.shape(expected), got=got if np.size(got) else None)
    if near(got, expected):
        return None
    facts = {"what": what, "n": n, "batch": examples}
    numbers = {"expected": np.ravel(expected), "got": np.ravel(got)}
    if not np.all(np.isfinite(got)):
        return say("not a number", **numbers, **facts)
    for mistake, value in (
        ("n times", expected * n),
        ("one nth", expected / n),
        ("batch times", expected * examples),
        ("n times", sum(parts)),
        ("mean of means", sum(parts) / n),
    ):
        if near(got, value, ATOL * max(1, np.abs(value).max())):
            return say(mistake, **numbers, **facts)
    for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if size and (near(got, part) or near(got, part * size / examples)):
            return say("one shard", i=i, **numbers, **facts)
    divisible = n * (examples // n)
    if np.any(expected) and not np.any(got):
        return say("zero", **numbers, **facts)
    if np.linalg.norm(got - expected) < 0.005 * np.linalg.norm(expected):
        return say("rounded", **numbers, **facts)
    if (
        cut_short is not None
        and divisible < examples
        and (near(got, cut_short) or near(got, cut_short * divisible / examples))
    ):
        return say("dropped", size=examples - divisible, **numbers, **facts)
    if rate and near(got, rate * expected):
        return say("rate in it", **numbers, **facts)
    return say("other value", **numbers, **facts)


class Ledger:
    """Counts on which device example_losses ran forward and backward, and for how many examples."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.places = [place_of(name) for name in devices]
        self.forward: list[tuple[Place, int]] = []
        self.backward: list[tuple[Place, Place, int]] = []

    def example_losses(self, weights: Any, x: Any, y: Any) -> Any:
        """Return one loss for each example of a softmax regression."""
        import tensorflow as tf

        each = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=y, logits=tf.convert_to_tensor(x) @ weights
        )
        examples, place = int(each.shape[0]), place_of(each.device)
        self.forward.append((place, examples))

        @tf.custom_gradient
        def watched(losses: Any) -> tuple[Any, Callable[[Any], Any]]:
            def backward(upstream: Any) -> Any:
                passed = tf.identity(upstream)
                self.backward.append((place, place_of(passed.device), examples))
                return passed

            return tf.identity(losses), backward

        return watched(each)

    def counts(self) -> tuple[list[int], list[int]]:
        """Return each device's examples in the forward pass, and in the backward pass.

        Of the backward pass, only examples count that it computed on the same device.
        """
        forward = [sum(n for place, n in self.forward if place == here) for here in self.places]
        backward = [
            sum(n for place, then, n in self.backward if place == then == here)
            for here in self.places
        ]
        return forward, backward

    def evidence(self) -> list[int]:
        """Return what does not depend on how a right solution cuts the batch."""
        forward, backward = self.counts()
        return [
            sum(forward),
            max(forward),
            min(forward) > 0,
            sum(backward),
            max(backward),
            len(self.forward),
        ]


def place_of(device: object) -> Place:
    """Return the type and the number of a TensorFlow device."""
    import tensorflow as tf

    spec = tf.DeviceSpec.from_string(str(device))
    return spec.device_type, spec.device_index


def placement(ledger: Ledger, examples: int) -> Problem | None:
    """Judge whether every device has computed its own shard, forward and backward."""
    n, (forward, backward) = len(ledger.places), ledger.counts()
    share = -(-examples // n)
    if not ledger.forward:
        return say("never called")
    for (_, device), got in zip(ledger.places, forward, strict=True):
        if got > share:
            return say(
                "wrong device", expected=share, got=got, device=device, share=share, batch=examples
            )
    elsewhere = [(place, k) for place, k in ledger.forward if place not in ledger.places]
    if elsewhere:
        (_, device), got = elsewhere[0]
        return say("wrong device", expected=0, got=got, device=device, share=0, batch=examples)
    if sum(forward) > examples:
        return say("repeated examples", expected=examples, got=sum(forward), batch=examples)
    if sum(forward) != examples:
        return say("lost examples", expected=examples, got=sum(forward), batch=examples)
    for (_, device), got in zip(ledger.places, forward, strict=True):
        if not got:
            return say("idle device", device=device, n=n)
    for place, then, _ in ledger.backward:
        if place != then:
            return say("backward", expected=place[1], got=then[1], device=place[1])
    if sum(backward) != examples:
        return say("lost examples", expected=examples, got=sum(backward), batch=examples)
    return (
        None if len(ledger.forward) == n else say("calls", expected=n, got=len(ledger.forward), n=n)
    )


def factor_between(got: np.ndarray, expected: np.ndarray) -> float:
    """Return the number by which `expected` must be multiplied to be closest to `got`."""
    return float(np.vdot(got, expected) / np.vdot(expected, expected))


def update(
    moved: np.ndarray, expected: np.ndarray, by_own_gradient: np.ndarray | None
) -> Problem | None:
    """Judge how far the weights have moved.

    `by_own_gradient` is how far the learner's gradient would move them, if the mistake in it is
    known.
    """
    if near(moved, expected):
        return None
    numbers = {"expected": np.ravel(expected), "got": np.ravel(moved)}
    if by_own_gradient is not None and near(moved, by_own_gradient, 1e-4):
        return say("update follows", **numbers)
    factor = factor_between(moved, expected)
    if not np.any(moved):
        return say("not updated", **numbers)
    if near(moved, factor * expected, 1e-4):
        return (
            say("uphill", **numbers)
            if abs(factor + 1) < 1e-3
            else say("updated n times", factor=factor, **numbers)
        )
    return say("moved elsewhere", **numbers)


def watched_model(strategy: Any, start: np.ndarray, rate: float) -> tuple[Any, Any]:
    """Make a softmax regression that counts each replica's examples and adds them up.

    The counts are in `seen`, and the sums are in `mass`.
    """
    import tensorflow as tf

    class Watched(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.w = self.add_weight(name="weights", shape=start.shape)
            self.seen, self.mass = (
                self.add_weight(
                    name=name,
                    shape=(),
                    initializer="zeros",
                    trainable=False,
                    synchronization=tf.VariableSynchronization.ON_READ,
                    aggregation=tf.VariableAggregation.SUM,
                )
                for name in ("seen", "mass")
            )

        def call(self, x: Any) -> Any:
            self.seen.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
            self.mass.assign_add(tf.reduce_sum(tf.cast(x, tf.float32)))
            return x @ self.w

    with strategy.scope():
        model = Watched()
        model.w.assign(start)
        optimizer = tf.keras.optimizers.SGD(rate)
    return model, optimizer


class Epoch:
    """One epoch on one device, in NumPy, and how a wrong epoch differs from it."""

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        start: np.ndarray,
        n: int,
        global_batch: int,
        rate: float,
        loss: Callable[..., float],
        gradient: Callable[..., np.ndarray],
    ) -> None:
        self.n, self.batch, self.examples, self.start = n, global_batch, len(x), start
        self.losses: list[float] = []
        self.shares: list[int] = []
        w = start.astype(float)
        for begin in range(0, len(x), global_batch):
            own_x, own_y = x[begin : begin + global_batch], y[begin : begin + global_batch]
            self.losses.append(loss(w, own_x, own_y))
            w = w - rate * gradient(w, own_x, own_y)
            self.shares.append(-(-len(own_x) // n))
            self.last = len(own_x)
        self.weights = w

    def share(self) -> int:
        """Return the most examples that a replica sees in a fair epoch."""
        return sum(self.shares)

    def shards_problem(self, counts: Sequence[float]) -> Problem | None:
        """Judge how many examples each replica has seen."""
        counts = [int(count) for count in counts]
        total = sum(counts)
        if total > self.examples:
            return say("twice", expected=self.examples, got=total, batch=self.examples)
        if total < self.examples:
            return say("too few", expected=self.examples, batch=self.examples, got=total)
        for i, got in enumerate(counts):
            if got > self.share():
                drawn = by_rank.numbers(
                    "examples in an epoch", self.share(), counts, who="replica", at_most=True
                )
                return {
                    **say("one replica", got=got, i=i, batch=self.examples, share=self.share()),
                    "picture": drawn,
                }
            if not got:
                return say("idle replica", i=i)
        return None

    def losses_problem(self, got: np.ndarray) -> Problem | None:
        """Judge the losses of the steps."""
        expected = np.array(self.losses)
        numbers = {"expected": expected, "got": got}
        if got.shape != expected.shape:
            return (
                say("steps", count=got.size, steps=len(expected), **numbers)
                if got.size
                else say("not losses")
            )
        if near(got, expected):
            return None
        facts = {"what": "loss", "n": self.n, "batch": self.batch}
        if not np.all(np.isfinite(got)):
            return say("not a number", **numbers)
        for mistake, factor in (
            ("n times", self.n),
            ("one nth", 1 / self.n),
            ("batch times", self.batch),
        ):
            if abs(got[0] - factor * expected[0]) < 1e-4 * factor:
                return say(mistake, **numbers, **facts)
        if len(expected) == 1:
            return say("other value", **numbers, **facts)
        if near(got[:-1], expected[:-1], 1e-4):
            if abs(got[-1] - expected[-1] * self.last / self.batch) < 1e-4:
                return say("last by constant", last=self.last, **numbers)
            return say("mean of means", **numbers, **facts)
        return say("later losses" if near(got[0], expected[0], 1e-4) else "order", **numbers)

    def weights_problem(self, got: np.ndarray, losses: np.ndarray) -> Problem | None:
        """Judge the weights at the end, where `losses` tell whether the steps before were right."""
        numbers = {"expected": np.ravel(self.weights), "got": np.ravel(got)}
        if near(got, self.weights, 1e-4):
            return None
        if not np.all(np.isfinite(got)):
            return say("not a number", **numbers)
        if np.array_equal(got, self.start.astype(float)):
            return say("weights still", **numbers)
        if len(self.losses) > 1:
            expected = np.array(self.losses)
            full_are_right = losses.shape == expected.shape and near(
                losses[:-1], expected[:-1], 1e-4
            )
            return say("weights last" if full_are_right else "weights order", **numbers)
        factor = factor_between(got - self.start, self.weights - self.start)
        for mistake, size in (
            ("n times", self.n),
            ("one nth", 1 / self.n),
            ("batch times", self.batch),
        ):
            if abs(factor - size) < 1e-3 * size:
                return say(mistake, **numbers, what="gradient", n=self.n, batch=self.batch)
        return say("weights", **numbers)

"""How the checks of unit 02 judge a model split by its layers, and a fine-tuned one.

These are exercises 2 and 3.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.in_kernel import array
from manyhands.checks.mirrored_strategy.diagnosis import near, place_of, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.mirrored_strategy.diagnosis import Place
    from manyhands.checks.report import Problem


class LayerLedger:
    """Notes the devices on which each call of `layer` ran, forward and backward.

    It also notes the device of each layer's weights.
    """

    def __init__(self, devices: Sequence[str], layers: int) -> None:
        self.devices, dealt = (
            [place_of(device) for device in devices],
            np.array_split(np.arange(layers), len(devices)),
        )
        self.places = [place for place, own in zip(self.devices, dealt, strict=True) for _ in own]
        self.forward: list[tuple[Place, Place]] = []
        self.backward: dict[int, Place] = {}

    def layer(self, w: Any, x: Any) -> Any:
        """Compute tanh(x w)."""
        import tensorflow as tf

        y, number = tf.tanh(tf.convert_to_tensor(x) @ w), len(self.forward)
        self.forward.append((place_of(w.device), place_of(y.device)))

        @tf.custom_gradient
        def watched(y: Any) -> tuple[Any, Callable[[Any], Any]]:
            def backward(upstream: Any) -> Any:
                passed = tf.identity(upstream)
                self.backward[number] = place_of(passed.device)
                return passed

            return tf.identity(y), backward

        return watched(y)

    def as_given(self) -> bool:
        """Whether every layer ran as in the colleague's function.

        There, the devices take turns forward, and the last one runs all of backward.
        """
        dealt = [self.devices[i % len(self.devices)] for i in range(len(self.places))]
        return self.forward == [(place, place) for place in dealt] and set(
            self.backward.values()
        ) == {self.devices[-1]}

    def evidence(self) -> list[Any]:
        """Return the numbers of the devices, of outputs and then of backward.

        The devices are in an order that the seed drew.
        """
        forward = [[_number(place) for place in pair] for pair in self.forward]
        return [forward, [_number(self.backward.get(i)) for i in range(len(self.places))]]


def _number(place: Place | None) -> int:
    return -1 if place is None or place[1] is None else place[1]


def serial_layers(starts: Sequence[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    """Return the gradients of the sum of squares of the output, computed without TensorFlow."""
    values = [x]
    for w in starts:
        values.append(np.tanh(values[-1] @ w))
    upstream = 2 * values[-1]
    gradients: list[np.ndarray] = []
    for w, x, y in zip(reversed(starts), reversed(values[:-1]), reversed(values[1:]), strict=True):
        slope = upstream * (1 - y**2)
        gradients.insert(0, x.T @ slope)
        upstream = slope @ w.T
    return gradients


def layers(ledger: LayerLedger) -> Problem | None:
    """Judge whether every layer ran on its device, forward and backward."""
    if len(ledger.forward) != len(ledger.places):
        return say("layer calls", expected=len(ledger.places), got=len(ledger.forward))
    devices = ", ".join(str(_number(place)) for place in ledger.devices)
    for i, (pair, place) in enumerate(zip(ledger.forward, ledger.places, strict=True)):
        for what, there in zip(
            ("The weights of layer {i} are", "The forward pass of layer {i} ran"), pair, strict=True
        ):
            if there != place:
                return say(
                    "layer place",
                    expected=place[1],
                    got=there[1],
                    what=what.format(i=i),
                    device=place[1],
                    devices=devices,
                )
    for i, place in enumerate(ledger.places):
        if i not in ledger.backward:
            return say("layer no backward", expected=place[1], got="none", i=i)
        if ledger.backward[i] != place:
            return say(
                "layer backward",
                expected=place[1],
                got=ledger.backward[i][1],
                i=i,
                device=place[1],
                devices=devices,
            )
    return None


def layer_gradients(result: Any, right: Sequence[np.ndarray], as_given: bool) -> Problem | None:
    """Judge each layer's gradient; `as_given` is whether the layers are still where they were."""
    if not isinstance(result, (list, tuple)) or len(result) != len(right):
        return say("layer list", count=len(right))
    got = [array(gradient) for gradient in result]
    if all(near(a, b) for a, b in zip(got, right, strict=True)):
        return say("layers not moved") if as_given else None
    if all(near(a, b) for a, b in zip(got, reversed(right), strict=True)):
        return say("layer order")
    i = next(i for i, (a, b) in enumerate(zip(got, right, strict=True)) if not near(a, b))
    mistake = "layer half" if near(2 * got[i], right[i]) else "layer gradient"
    return say(mistake, expected=np.ravel(right[i]), got=np.ravel(got[i]), i=i)


class FineTuning:
    """The case of exercise 3, and what a single process and likely mistakes compute from it."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.n = n
        self.features, *self.hidden, self.classes = (
            int(rng.integers(*ends)) for ends in ((3, 7), (4, 8), (4, 8), (3, 6))
        )
        # which 2, 3 and 4 replicas can share evenly, if it is taken for the global batch
        self.own_batch = 12 * int(rng.integers(1, 3))
        widths = (self.features, *self.hidden, self.classes)
        self.start = [
            rng.normal(size=shape).astype("float32")
            for pair in pairwise(widths)
            for shape in (pair, pair[1:])
        ]
        self.rate, examples = round(float(rng.uniform(0.05, 0.15)), 3), 4 * n * self.own_batch
        self.x, self.y = (
            rng.normal(size=(examples, self.features)).astype("float32"),
            rng.integers(self.classes, size=examples),
        )
        self.epochs = int(rng.integers(3, 5))  # and not always the same number

    def alone(self, batch: int, rate: float) -> tuple[np.ndarray, list[float]]:
        """Return the last layer's weights at the end, and each epoch's running accuracy.

        The bias is in the last row of the weights.
        """
        inputs = self.x.astype(float)
        for weights, bias in zip(self.start[:-2:2], self.start[1:-2:2], strict=True):
            inputs = np.tanh(inputs @ weights + bias)
        inputs, w = (
            np.hstack([inputs, np.ones((len(inputs), 1))]),
            np.vstack(self.start[-2:]).astype(float),
        )
        accuracies = []
        for _ in range(self.epochs):
            right = 0
            for begin in range(0, len(inputs), batch):
                own, labels = inputs[begin : begin + batch], self.y[begin : begin + batch]
                scores = own @ w
                right += int((scores.argmax(1) == labels).sum())
                p = np.exp(scores - scores.max(1, keepdims=True))
                p /= p.sum(1, keepdims=True)
                p[np.arange(len(labels)), labels] -= 1
                w = w - rate * own.T @ p / len(labels)
            accuracies.append(right / len(inputs))
        return w, accuracies


def fine_tuned(strategy: Any, result: Any, case: FineTuning) -> tuple[Problem | None, list[Any]]:
    """Return the problem and the evidence of exercise 3."""
    try:
        model, accuracies = result
        accuracies = [float(accuracy) for accuracy in accuracies]
        with strategy.scope():  # an old optimizer makes its counter when it is first asked for
            variables = [*model.variables, model.optimizer.iterations]
        weights, steps = (
            [np.asarray(weight, dtype=float) for weight in model.get_weights()],
            int(model.optimizer.iterations.numpy()),
        )
    except Exception:  # noqa: BLE001 - not a pair, or not what the pair should be
        return say("not a pair"), []
    copies = [
        len({copy.device for copy in strategy.experimental_local_results(variable)})
        for variable in variables
    ]
    problem = _fine_tuned_problem(case, variables, copies, weights, accuracies)
    problem = say("fitted elsewhere") if not problem and not steps else problem
    return problem, [copies, weights, accuracies, steps > 0]


def _fine_tuned_problem(
    case: FineTuning,
    variables: Sequence[Any],
    copies: Sequence[int],
    weights: Sequence[np.ndarray],
    accuracies: Sequence[float],
) -> Problem | None:
    got: Any
    for variable, got in zip(variables, copies, strict=True):
        if got != case.n:
            return say("not mirrored", expected=case.n, got=got, variable=variable.name, n=case.n)
    if [w.shape for w in weights] != [w.shape for w in case.start]:
        return say("other model")
    if not all(near(a, b) for a, b in zip(weights[:-2], case.start[:-2], strict=True)):
        return say("not frozen")
    got, whole = np.vstack(weights[-2:]), case.n * case.own_batch
    right, counted = case.alone(whole, case.n * case.rate)
    numbers = {"expected": np.ravel(right), "got": np.ravel(got)}
    if not near(got, right, 1e-4):
        for mistake, batch, rate in (
            ("old rate", whole, case.rate),
            ("own batch", case.own_batch, case.n * case.rate),
            ("nothing scaled", case.own_batch, case.rate),
        ):
            if near(got, case.alone(batch, rate)[0], 1e-4):
                return say(mistake, **numbers, n=case.n, batch=case.own_batch)
        return say(
            "not trained" if near(got, np.vstack(case.start[-2:])) else "fitted otherwise",
            **numbers,
        )
    if not near(np.array(accuracies), np.array(counted), 1e-4):
        return say("accuracies", expected=counted, got=accuracies, count=case.epochs)
    return None

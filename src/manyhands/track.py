"""The task of units 01 to 10: one network, one data set, one schedule.

A table says who ended with the weights of one process.

Everything is float64, and every framework starts from the same numbers: `start()` draws them with
numpy. `one_process()` trains without any framework, so that no unit is its own judge.

    R(w) = |w|^2 / 2,   objective of a step = DECAY * R(w) + the mean of the losses of its ROWS rows

torch and TensorFlow are imported only by those who ask for their network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

DIGITS, ROWS, STEPS, RATE, DECAY = 1500, 250, 60, 0.5, 0.01
SIZES = (64, 32, 10)
# The sums of a step have ROWS terms. In another order they differ by about sqrt(ROWS) roundings, if
# these have random signs; and the steps add up: 60 * sqrt(250) = 949 roundings, of 2.2e-16 each in
# float64 and 1.2e-7 in float32, rounded up to one digit.
TOLERANCE = {"float64": 1e-12, "float32": 2e-4}
# unit, system, what becomes of the weights. A unit shows its own lines with what it has measured;
# those of earlier units stand above them.
SYSTEMS = (
    ("01", "one process", True),
    ("01", "by hand: sum of even shards", True),
    ("01", "by hand: sum of uneven shards", True),
    ("01", "by hand: mean of means, uneven shards", False),
    ("02", "MirroredStrategy", True),
    ("03", "DataParallel by hand, with threads", True),
    ("06", "DistributedDataParallel", True),
    ("07", "MultiWorkerMirroredStrategy, own loop", True),
    ("07", "MultiWorkerMirroredStrategy, Model.fit", True),
    ("08", "parameter server by hand, synchronous", True),
    ("08", "parameter server by hand, asynchronous", False),
    ("08", "ParameterServerStrategy, synchronous", True),
    ("10", "Horovod, PyTorch", True),
    ("10", "Horovod, TensorFlow eager", True),
    ("10", "Horovod, Keras", True),
)


def rows(step: int) -> slice:
    """Return the slice of the training data that is the whole batch of a step (counted from 0).

    There are six batches, then again from the start.
    """
    first = step * ROWS % DIGITS
    return slice(first, first + ROWS)


def data() -> tuple[np.ndarray, np.ndarray]:
    """All training data as numpy arrays: x [1500, 64] in float64, y [1500]."""
    from manyhands.data import digits

    x, y = digits("train")
    return x.astype("float64"), y


def start() -> list[np.ndarray]:
    """Return the weights at the start as numpy arrays: [32, 64], [32], [10, 32], [10].

    They are as PyTorch keeps them (TensorFlow: transposed), and the same in every process.
    """
    import numpy as np

    draw, (inputs, hidden, outputs) = np.random.default_rng(0), SIZES
    return [
        draw.uniform(-1, 1, shape) / shape[-1] ** 0.5
        for shape in ((hidden, inputs), (hidden,), (outputs, hidden), (outputs,))
    ]


def network(device: str | torch.device = "cpu") -> nn.Sequential:
    """The network in PyTorch, with the weights of `start()`."""
    import torch
    from torch import nn

    inputs, hidden, outputs = SIZES
    model = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs)).double()
    with torch.no_grad():
        for parameter, values in zip(model.parameters(), start(), strict=True):
            parameter.copy_(torch.from_numpy(values))
    return model.to(device)


def keras_network() -> Any:
    """The network in tf.keras, with the weights of `start()`.

    Call it in the strategy's scope. `numbers_of` gives its weights as `distance` wants them.
    """
    import tensorflow as tf

    inputs, hidden, outputs = SIZES
    dense = tf.keras.layers.Dense
    model = tf.keras.Sequential(
        [
            dense(hidden, "tanh", input_shape=(inputs,), dtype="float64"),
            dense(outputs, dtype="float64"),
        ]
    )
    model.set_weights([values.T for values in start()])
    return model


def numbers_of(model: Any) -> list[np.ndarray]:
    """Return the weights of a `keras_network()` as `start()` has them.

    TensorFlow keeps a matrix transposed.
    """
    return [values.T for values in model.get_weights()]


def one_process() -> tuple[list[np.ndarray], list[float]]:
    """Train without a framework.

    Returns the weights at the end, as a list of arrays, and the objective of each step before it is
    taken.
    """
    import numpy as np

    (x, y), weights = data(), start()
    objectives: list[float] = []
    for step in range(STEPS):
        batch, labels = x[rows(step)], y[rows(step)]
        w1, b1, w2, b2 = weights
        hidden = np.tanh(batch @ w1.T + b1)
        scores = hidden @ w2.T + b2
        scores -= scores.max(1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        objectives.append(
            float(
                -log_p[np.arange(ROWS), labels].mean()
                + DECAY / 2 * sum((w * w).sum() for w in weights)
            )
        )
        slope = (np.exp(log_p) - np.eye(SIZES[-1])[labels]) / ROWS
        below = slope @ w2 * (1 - hidden**2)
        gradients = [below.T @ batch, below.sum(0), slope.T @ hidden, slope.sum(0)]
        weights = [w - RATE * (g + DECAY * w) for w, g in zip(weights, gradients, strict=True)]
    return weights, objectives


def distance(weights: Iterable[Any], reference: Iterable[np.ndarray]) -> float:
    """The largest difference between two lists of weights (arrays or tensors): one number."""
    import numpy as np

    pairs = [
        (w.detach().cpu().numpy() if hasattr(w, "detach") else np.asarray(w), r)
        for w, r in zip(weights, reference, strict=True)
    ]
    return max(float(np.abs(w - r).max()) for w, r in pairs)


def table(unit: str, measured: Mapping[str, float], dtype: str = "float64") -> str:
    """The table up to this unit, as text.

    `measured` maps the unit's systems, as `SYSTEMS` calls them, to their distances from one
    process.

    A small distance is shown as "yes" only: its digits are rounding, and differ from machine to
    machine. ValueError if a system is not in the list.
    """
    tolerance, known = TOLERANCE[dtype], [system for number, system, _ in SYSTEMS if number == unit]
    if set(measured) - set(known):
        raise ValueError(
            f"unit {unit} has no system {sorted(set(measured) - set(known))}: "
            "add it to manyhands.track.SYSTEMS"
        )
    lines = [f"unit  {'system':<40}  same weights as one process, to {tolerance:g}"]
    for number, system, same in SYSTEMS:
        if number < unit:
            lines.append(f"{number}    {system:<40}  {'yes' if same else 'no'}")
        elif system in measured:
            far = measured[system]
            lines.append(
                f"{number}    {system:<40}  {'yes' if far < tolerance else f'no: {far:.3f} apart'}"
            )
    return "\n".join(lines)

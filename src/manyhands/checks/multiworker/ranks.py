"""The half of unit 07's checks that runs on the workers.

It makes experiments with the learner's functions and returns plain numbers.

`strategy` is the one that the notebook's set-up cell has made, because a process can hardly make a
second world. Everything is float64.
"""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import tensorflow as tf

from manyhands.checks.multiworker.diagnosis import FIT_ATOL, near
from manyhands.checks.on_ranks import learners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from manyhands.checks.multiworker.answers import (
        Epoch,
        FittedCase,
        InputSizes,
        LossCase,
        SaveAnswer,
        Saved,
    )


def me() -> int:
    """Return this worker's rank."""
    return int(os.environ["RANK"])


# ------------------------------------------------------------------ 2: fit


def fits(name: str, seed: int) -> FittedCase:
    """Train a layer of scores with the learner's function.

    Each worker's model starts with different weights.
    """
    function, rng, world = (
        learners(name),
        np.random.default_rng(seed),
        int(os.environ["WORLD_SIZE"]),
    )
    batch, epochs, rate = world * int(rng.integers(2, 4)), 2, float(rng.integers(128, 384)) / 1024
    x, y = rng.normal(size=(3 * batch, 4)), rng.integers(3, size=3 * batch)
    starts = [[rng.normal(size=(4, 3)), rng.normal(size=3)] for _ in range(world)]

    def make_model() -> Any:
        matrix, bias = map(tf.keras.initializers.Constant, starts[me()])
        return tf.keras.Sequential(
            [
                tf.keras.layers.Dense(
                    3,
                    input_shape=(4,),
                    dtype="float64",
                    kernel_initializer=matrix,
                    bias_initializer=bias,
                )
            ]
        )

    model = function(make_model, x.copy(), y.copy(), batch, epochs, rate)
    trained = isinstance(model, tf.keras.Model) and getattr(model, "optimizer", None) is not None
    got = _flat(model.get_weights()) if trained else np.zeros(15)
    whole, small = _cut(3 * batch, batch), _cut(3 * batch, batch // world)
    right, wrong = (
        _trained(starts[0], x, y, whole * epochs, rate),
        {
            "unchanged": _flat(starts[0]),
            "alone": _trained(starts[me()], x, y, whole * epochs, rate),
        },
    )
    wrong |= {
        "batch of a worker": _trained(starts[0], x, y, small * epochs, rate),
        "sharded before": _trained(starts[0], x, y, [_twice(batch, world)] * epochs, rate),
    }
    wrong["alone"] = wrong["alone"] if me() else wrong["unchanged"]
    wrong["rate scaled"] = _trained(starts[0], x, y, whole * epochs, rate * world)
    looks = (
        "no model"
        if not trained
        else next((key for key, value in wrong.items() if _close(got, value)), "other")
    )
    return {
        "samples": len(x),
        "batch": batch,
        "epochs": epochs,
        "rate": rate,
        "workers": world,
        "steps": int(model.optimizer.iterations.numpy()) if trained else None,
        "right steps": 3 * epochs,
        "got": got.tolist(),
        "right": right.tolist(),
        "looks": None if _close(got, right) else looks,
    }


def _close(got: np.ndarray, right: np.ndarray) -> bool:
    return bool(np.all(np.abs(got - right) <= FIT_ATOL))


def _cut(n: int, batch: int) -> list[np.ndarray]:
    return [np.arange(begin, min(begin + batch, n)) for begin in range(0, n, batch)]


def _twice(batch: int, world: int) -> np.ndarray:
    """Return the samples of an epoch's only step if the data is shared out twice.

    Each worker takes its share of the data, and fit then takes its part of that share.
    """
    shares = (np.arange(worker, 3 * batch, world)[:batch] for worker in range(world))
    return np.concatenate(
        [np.array_split(share, world)[worker] for worker, share in enumerate(shares)]
    )


def _trained(
    start: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    batches: Iterable[np.ndarray],
    rate: float,
) -> np.ndarray:
    """Return the weights that a single process computes by SGD, without TensorFlow.

    The loss is the mean cross-entropy of these batches, and the weights are one flat array.
    """
    matrix, bias = start
    for rows in batches:
        scores = x[rows] @ matrix + bias
        slope = np.exp(scores - scores.max(1, keepdims=True))
        slope = (slope / slope.sum(1, keepdims=True) - np.eye(3)[y[rows]]) / len(rows)
        matrix, bias = matrix - rate * x[rows].T @ slope, bias - rate * slope.sum(0)
    return _flat([matrix, bias])


# ------------------------------------------------------------------ 3: loss


def losses(name: str, seed: int) -> list[LossCase]:
    """Add up the learner's parts of some batches over the workers.

    Name the mistake that the sum looks like.
    """
    function, strategy = learners(name), learners("strategy")
    rng, n = np.random.default_rng(seed), learners("strategy").num_replicas_in_sync
    cases: list[LossCase] = []
    few, many = (int(rng.integers(*span)) for span in ((2, 4), (5, 8)))
    decay = float(rng.uniform(0.2, 0.9))
    for sizes, own_decay in (
        ([many] * n, 0.0),
        ([few, *[many] * (n - 2), 0], 0.0),
        ([many, *[few] * (n - 1)], decay),
        ([0, *[many] * (n - 2), few], decay / 2),
    ):
        cases.append(_loss(function, strategy, rng, sizes, own_decay))
    with _one_worker() as alone:
        cases.append(_loss(function, alone, rng, [many], decay))
    return cases


@contextmanager
def _one_worker() -> Iterator[Any]:
    """Treat this process as the only worker.

    This holds even for a function that asks the set-up cell's names or the environment how many
    there are.
    """
    from IPython import get_ipython

    alone = tf.distribute.get_strategy()  # TensorFlow's default, which has one replica
    with (
        patch.dict(get_ipython().user_ns, strategy=alone, workers=learners("workers")[:1]),
        patch.dict(os.environ, WORLD_SIZE="1"),
    ):
        yield alone


def _loss(
    function: Callable[..., Any],
    strategy: Any,
    rng: np.random.Generator,
    sizes: list[int],
    decay: float,
) -> LossCase:
    x, y = rng.normal(size=(sum(sizes), 4)), rng.integers(3, size=sum(sizes))
    start = [rng.normal(size=(4, 3)), rng.normal(size=3)]
    with strategy.scope():
        weights = [tf.Variable(value) for value in start]
    ends = np.cumsum(sizes)
    worker = me() if len(sizes) > 1 else 0
    mine = slice(int(ends[worker] - sizes[worker]), int(ends[worker]))
    scalar: list[bool] = []

    def replica(x: Any, y: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=y, logits=x @ weights[0] + weights[1]
            )
            part = tf.cast(
                tf.convert_to_tensor(function(each, weights, decay, sum(sizes))), tf.float64
            )
            scalar.append(part.shape.rank == 0)
            part = tf.reduce_sum(part)
        return part, *tape.gradient(part, weights, unconnected_gradients="zero")

    step = tf.function(
        lambda: [
            strategy.reduce("SUM", part, axis=None)
            for part in strategy.run(replica, (x[mine], y[mine]))
        ]
    )
    got = _flat(step())
    right, wrong = _alone(start, x, y, sizes, decay)
    looks = (
        None
        if near(got, right)
        else (
            "not finite"
            if not np.all(np.isfinite(got))
            else next((key for key, value in wrong if near(got, value)), "other")
        )
    )
    return {
        "sizes": sizes,
        "decay": decay,
        "got": got.tolist(),
        "right": right.tolist(),
        "scalar": all(scalar),
        "looks": looks if all(scalar) else "no number",
    }


def _flat(tensors: Iterable[Any]) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(tensor)) for tensor in tensors])


def _alone(
    start: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray, sizes: list[int], decay: float
) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
    """Return the objective and gradients of a single process, and of likely mistakes.

    Each is one flat array, computed without TensorFlow.
    """
    n, total, ends = len(sizes), sum(sizes), np.cumsum(sizes)
    scores = x @ start[0] + start[1]
    scores = scores - scores.max(1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    slope = np.exp(log_p) - np.eye(3)[y]
    each = np.stack(
        [_flat([-log_p[i, y[i]], np.outer(x[i], slope[i]), slope[i]]) for i in range(total)]
    )
    penalty = _flat([sum((w * w).sum() for w in start) / 2, *start])
    means = sum(
        each[end - size : end].mean(0) for size, end in zip(sizes, ends, strict=True) if size
    )
    mean, decayed = each.sum(0) / total, decay * penalty
    wrong = {
        "mean of own": means + decayed,
        "mean of means": means / n + decayed,
        "divided again": mean / n + decayed,
        "not divided": each.sum(0) + decayed,
        "decay on each": mean + n * decayed,
        "decay by batch": mean + decayed / total,
        "no half": mean + 2 * decayed,
        "no decay": mean,
    }
    # a fixed number in the code
    fixed = [("number of workers", mean + n * decayed / k) for k in range(2, 13) if k != n]
    return mean + decayed, [*wrong.items(), *fixed]


# ------------------------------------------------------------------ 5: dataset


def datasets(name: str, seed: int) -> list[InputSizes]:
    """Run two epochs of the learner's pipelines, and the first with a different seed.

    There are workers with one and with several replicas. This process is every third pipeline.
    """
    function, rng = learners(name), np.random.default_rng(seed)
    results: list[InputSizes] = []
    world, seed = int(os.environ["WORLD_SIZE"]), int(seed) % 1000
    for pipelines, each in ((3, 1), (2, 2), (4, 2)):
        share = int(rng.integers(2, 4))
        n, batch = (
            int(rng.integers(5, 8)) * pipelines * each + int(rng.integers(1, 4)),
            share * pipelines * each,
        )
        x = rng.permutation(n).astype("float64")  # the number of a sample is not its place
        case: InputSizes = {
            "n": n,
            "batch": batch,
            "pipelines": pipelines,
            "replicas": pipelines * each,
            "mine": {},
            "stored": [int(k) for k in x],
        }
        for pipeline in range(me(), pipelines, world):
            context = tf.distribute.InputContext(
                num_input_pipelines=pipelines,
                input_pipeline_id=pipeline,
                num_replicas_in_sync=pipelines * each,
            )
            case["mine"][pipeline] = [
                _epoch(function, context, x, batch, epoch, own_seed)
                for epoch, own_seed in ((0, seed), (1, seed), (0, seed + 500))
            ]
        results.append(case)
    return results


def _epoch(
    function: Callable[..., Any], context: Any, x: np.ndarray, batch: int, epoch: int, seed: int
) -> Epoch:
    """Return {"batches": samples of each batch, "labels": whether they belong to them}.

    If there is no such dataset, return {"error"}.
    """
    x, y = x[:, None].copy(), (3 * x + 1).astype("int64")
    lent = x.copy(), y.copy()
    dataset = function(context, *lent, batch, epoch, seed)
    if not np.array_equal(x, lent[0]) or not np.array_equal(y, lent[1]):
        return {"error": "arrays changed"}
    if (
        not isinstance(dataset, tf.data.Dataset)
        or not isinstance(dataset.element_spec, (tuple, list))
        or len(dataset.element_spec) != 2
    ):
        return {"error": "not a dataset"}
    batches = [(np.ravel(a.numpy()), np.ravel(b.numpy())) for a, b in dataset.take(3 * len(x))]
    fits = all(a.shape == b.shape and np.array_equal(3 * a + 1, b) for a, b in batches)
    return {
        "batches": [[int(k) for k in a] for a, _ in batches],
        "labels": bool(fits),
        "error": None,
    }


# ------------------------------------------------------------------ 6: save


class Watched:
    """A checkpoint that notes which worker writes where.

    A worker that is not the chief does not really write to the chief's path, because two writers
    would spoil it.
    """

    def __init__(self, checkpoint: Any, path: str, is_chief: bool, elsewhere: str) -> None:
        self._checkpoint, self._path, self._is_chief, self._elsewhere = (
            checkpoint,
            path,
            is_chief,
            elsewhere,
        )
        self.paths: list[str] = []
        self.saved = False

    def write(self, file_prefix: Any, options: Any = None) -> Any:
        """Write the checkpoint, and note where."""
        return self._checkpoint.write(self._noted(file_prefix))

    def save(self, file_prefix: Any, options: Any = None) -> Any:
        """Save the checkpoint with a number, and note where."""
        self.saved = True
        return self._checkpoint.save(self._noted(file_prefix))

    def _noted(self, file_prefix: Any) -> Any:
        self.paths.append(os.path.abspath(str(file_prefix)))
        clash = self.paths[-1] == self._path and not self._is_chief
        return self._elsewhere if clash else file_prefix


def saves(name: str, seed: int, folder: str) -> SaveAnswer:
    """Run the learner's save on all workers.

    The checkpoint has a variable of which every worker keeps a part, as a metric or a batch norm
    does.
    """
    function, strategy = learners(name), learners("strategy")
    rng, world = np.random.default_rng(seed), int(os.environ["WORLD_SIZE"])
    weight, parts, chief = (
        rng.normal(size=2),
        rng.integers(1, 9, size=world),
        int(rng.integers(1, world)),
    )
    with strategy.scope():
        variable = tf.Variable(weight)
        total = tf.Variable(
            0.0,
            dtype=tf.float64,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    strategy.experimental_local_results(total)[0].assign(float(parts[me()]))
    path = os.path.join(folder, "saved", "checkpoint")
    checkpoint = Watched(
        tf.train.Checkpoint(weight=variable, total=total),
        path,
        me() == chief,
        os.path.join(folder, f"worker-{me()}"),
    )
    function(checkpoint, path, me() == chief, me())
    others = [prefix for prefix in checkpoint.paths if prefix != path]
    left = sorted(
        os.path.basename(file) for prefix in others for file in glob.glob(glob.escape(prefix) + "*")
    )
    # what is empty now was made for it
    made = {os.path.dirname(prefix) for prefix in others} - {
        os.path.dirname(path),
        os.environ.get("MANYHANDS_NODE_DIR"),
    }
    left += [
        f"an empty folder, {os.path.basename(directory)}"
        for directory in sorted(made)
        if os.path.isdir(directory) and not os.listdir(directory)
    ]
    return {
        "chief": me() == chief,
        "wrote": len(checkpoint.paths),
        "to the chief's": path in checkpoint.paths,
        "saved": checkpoint.saved,
        "left": left,
        "right": [*weight, float(parts.sum())],
    }


def saved(folder: str) -> Saved:
    """Return what the checkpoint contains, and which other files are next to it."""
    folder = os.path.join(folder, "saved")
    path = os.path.join(folder, "checkpoint")
    own = {os.path.basename(file) for file in glob.glob(glob.escape(path) + ".*")}
    others = sorted(
        os.path.relpath(os.path.join(place, file), folder)
        for place, _, files in os.walk(folder)
        for file in files
        if place != folder or file not in own
    )
    try:
        reader = tf.train.load_checkpoint(path)
    except Exception:  # noqa: BLE001 - TensorFlow reports in several ways that there is none
        return {"got": None, "others": others}
    values = {
        key.split("/")[0]: reader.get_tensor(key)
        for key in reader.get_variable_to_shape_map()
        if key.endswith("VARIABLE_VALUE")
    }
    known = {"weight", "total"} <= set(values)
    return {
        "got": [*np.ravel(values["weight"]).tolist(), float(values["total"])] if known else [],
        "others": others,
    }

"""Checks of unit 02, MirroredStrategy: a function for each check cell takes what the learner wrote.

Everything runs in the notebook's own kernel, on the devices that the set-up cell made. The number
of replicas, the devices, the shapes and the data depend on the seed. A mistake of the learner
becomes a FAIL line, and so does an exception.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.in_kernel import array, ask, ask_noting_changes
from manyhands.checks.mirrored_strategy import diagnosis, model_diagnosis
from manyhands.checks.mirrored_strategy.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from manyhands.checks.report import Problem

    Judged = tuple[Problem | None, Any]  # the problem with a case, and its evidence

__all__ = ["HINTS", "by_hand", "epoch", "fit", "replica_loss", "split"]

ATOL = 1e-5
check = partial(Report, criteria=CRITERIA)


def drawn_devices(rng: np.random.Generator, count: int | None = None) -> list[str]:
    """Return `count` of the logical devices, or a drawn number of them, in a drawn order.

    Raise `Stopped` if there are too few. A check with several cases asks for each number itself, so
    that every seed has all of them.
    """
    import tensorflow as tf

    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    there = [device.name for device in tf.config.list_logical_devices(kind)][:4]
    if len(there) < 4:
        raise Stopped(MISTAKES["devices"].format(found=len(there), needed=4))
    return list(rng.permutation(there)[: count or rng.integers(2, 5)])


def _judge_all(
    report: Report, judged: Mapping[str, Sequence[Judged]], atols: Mapping[str, float] | None = None
) -> None:
    """Judge {criterion: [(problem or None, evidence) of each case]}."""
    for name, cases in judged.items():
        report.judge(
            name,
            (problem for problem, _ in cases),
            [value for _, value in cases],
            atol=(atols or {}).get(name, ATOL),
        )


def problem_in(
    examples: int, features: int, classes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a softmax regression, and return x, y and the starting weights."""
    x = rng.normal(size=(examples, features)).astype("float32")
    return (
        x,
        rng.integers(classes, size=examples),
        rng.normal(size=(features, classes)).astype("float32"),
    )


def serial_gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the gradient of the mean loss, computed in float64 and without TensorFlow."""
    scores = np.exp(x.astype(float) @ w)
    scores /= scores.sum(1, keepdims=True)
    scores[np.arange(len(y)), y] -= 1
    return x.T.astype(float) @ scores / max(len(y), 1)


def serial_loss(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean loss, computed in float64 and without TensorFlow; 0 for no examples."""
    scores = x.astype(float) @ w
    return (
        float(np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(len(y)), y]))
        if len(y)
        else 0.0
    )


def by_hand(hand_made_step: Callable[..., Any]) -> None:
    """Check exercise 1, which returns a gradient.

    It is hand_made_step(devices, weights, x, y, example_losses, learning_rate).
    """
    import tensorflow as tf

    rng = np.random.default_rng(seed())
    with check("by-hand") as report:
        judged: dict[str, list[Judged]] = {"placement": [], "gradient": [], "update": []}
        rate = float(rng.uniform(0.2, 0.8))
        # two or more over: too many for one device
        for n, rest in ((3, 0), (4, int(rng.integers(2, 4)))):
            devices, examples = drawn_devices(rng, n), n * int(rng.integers(3, 30)) + rest
            x, y, start = problem_in(
                examples, int(rng.integers(3, 7)), int(rng.integers(3, 6)), rng
            )
            weights, ledger = tf.Variable(start), diagnosis.Ledger(devices)
            result, message = ask_noting_changes(
                hand_made_step, devices, weights, x, y, ledger.example_losses, rate
            )
            spoiled: Problem | None = {"mistake": message} if message else None
            shards = diagnosis.shards(examples, n)
            expected = serial_gradient(start, x, y)
            parts = [serial_gradient(start, x[s], y[s]) for s in shards]
            cut_short = serial_gradient(
                start, x[: examples - examples % n], y[: examples - examples % n]
            )
            judged["placement"].append((diagnosis.placement(ledger, examples), ledger.evidence()))
            gradient, moved = array(result), array(weights) - start
            problem = diagnosis.average(
                "gradient", gradient, expected, parts, shards, examples, cut_short, rate
            )
            named = problem and problem["mistake"] != MISTAKES["other value"].format(
                what="gradient"
            )
            update = diagnosis.update(moved, -rate * expected, -rate * gradient if named else None)
            judged["gradient"].append((spoiled or problem, [gradient, bool(spoiled)]))
            judged["update"].append(((update and spoiled) or update, moved))
        _judge_all(report, judged)


def split(split_gradients: Callable[..., Any]) -> None:
    """Check exercise 2, split_gradients(devices, starts, x, layer) -> each layer's gradient."""
    import tensorflow as tf

    rng = np.random.default_rng(seed())
    with check("split") as report:
        judged: dict[str, list[Judged]] = {"placement": [], "gradients": []}
        # 6 on 4 are 2, 2, 1, 1, and by another rounding 2, 1, 2, 1; and not always all devices
        for n, layers in ((4, 6), (3, 4)):
            devices = drawn_devices(rng, n)
            widths = rng.integers(3, 7, size=layers + 1)
            starts = [rng.normal(scale=0.6, size=size) for size in pairwise(widths)]
            x = rng.normal(size=(int(rng.integers(3, 8)), widths[0]))
            ledger = model_diagnosis.LayerLedger(devices, layers)
            result = ask(
                split_gradients,
                devices,
                [start.copy() for start in starts],
                tf.constant(x),
                ledger.layer,
            )
            judged["placement"].append((model_diagnosis.layers(ledger), ledger.evidence()))
            problem = model_diagnosis.layer_gradients(
                result, model_diagnosis.serial_layers(starts, x), ledger.as_given()
            )
            gradients = (
                [array(gradient) for gradient in result]
                if isinstance(result, (list, tuple))
                else []
            )
            judged["gradients"].append((problem, [gradients, ledger.as_given()]))
        _judge_all(report, judged)


def make_strategy(devices: list[str]) -> Any:
    """Make a strategy without collectives, since collectives of two sizes in one process abort."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


def fit(fine_tune: Callable[..., Any]) -> None:
    """Check exercise 3, which returns a pair of the model and its accuracies.

    It is fine_tune(strategy, build_model, x, y, per_replica_batch, base_rate, epochs).
    """
    import tensorflow as tf

    rng = np.random.default_rng(seed())
    with check("fit") as report:
        devices = drawn_devices(rng)
        case = model_diagnosis.FineTuning(rng, len(devices))

        def build_model() -> Any:
            dense = tf.keras.layers.Dense
            model = tf.keras.Sequential(
                [
                    dense(case.hidden[0], "tanh", input_shape=(case.features,)),
                    dense(case.hidden[1], "tanh"),
                    dense(case.classes),
                ]
            )
            model.set_weights(case.start)
            return model

        strategy = make_strategy(devices)
        result = ask(
            fine_tune,
            strategy,
            build_model,
            case.x.copy(),
            case.y.copy(),
            case.own_batch,
            case.rate,
            case.epochs,
        )
        problem, values = model_diagnosis.fine_tuned(strategy, result, case)
        report.judge("fit", [problem], values, atol=1e-4)


def replica_loss(loss_of: Callable[..., Any]) -> None:
    """Check exercise 4, loss_of(example_losses, global_batch) -> the replica's share of a loss."""
    rng = np.random.default_rng(seed())

    def loss_and_gradient(strategy: Any, *case: np.ndarray) -> list[np.ndarray]:
        return _loss_and_gradient(strategy, loss_of, *case)

    # the name that is reported if it raises
    loss_and_gradient.__name__ = getattr(loss_of, "__name__", "replica_loss")
    with check("replica-loss") as report:
        strategies = {n: make_strategy(drawn_devices(rng, n)) for n in (3, 4)}
        judged: dict[str, list[Judged]] = {"loss": [], "gradient": []}
        for n, examples in ((3, 9), (4, 13), (3, 2)):  # even; uneven; fewer examples than replicas
            x, y, start = problem_in(examples, 4, 3, rng)
            result = ask(loss_and_gradient, strategies[n], x, y, start)
            shards = diagnosis.ceil_shards(examples, n)
            for name, got, serial in zip(
                judged, result, (serial_loss, serial_gradient), strict=True
            ):
                parts = [serial(start, x[s], y[s]) for s in shards]
                judged[name].append(
                    (
                        diagnosis.average(name, got, serial(start, x, y), parts, shards, examples),
                        got,
                    )
                )
        _judge_all(report, judged)


def _loss_and_gradient(
    strategy: Any, loss_of: Callable[..., Any], x: np.ndarray, y: np.ndarray, start: np.ndarray
) -> list[np.ndarray]:
    """Return the loss and the gradient of one global batch, each summed over the replicas."""
    import tensorflow as tf

    with strategy.scope():
        weights = tf.Variable(start)

    def replica_step(x: Any, y: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x @ weights)
            loss = tf.reshape(tf.convert_to_tensor(loss_of(each, len_of_batch)), [])
        return loss, tape.gradient(loss, weights, unconnected_gradients="zero")

    len_of_batch = len(x)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(len(x))
    batch = next(iter(strategy.experimental_distribute_dataset(dataset)))
    step = tf.function(
        lambda batch: [
            strategy.reduce("SUM", part, axis=None) for part in strategy.run(replica_step, batch)
        ]
    )
    return [array(part) for part in step(batch)]


def epoch(train_epoch: Callable[..., Any]) -> None:
    """Check exercise 5, which returns losses, one for each step.

    It is train_epoch(strategy, model, optimizer, x, y, global_batch).
    """
    rng = np.random.default_rng(seed())
    with check("epoch") as report:
        judged: dict[str, list[Judged]] = {"shards": [], "losses": [], "weights": []}
        rate = round(float(rng.uniform(0.2, 0.5)), 3)
        # one even step; four steps, the last one uneven
        for n, steps, rest in ((3, 1, 0), (4, 3, 5)):
            strategy, global_batch = (
                make_strategy(drawn_devices(rng, n)),
                n * int(rng.integers(3, 9)),
            )
            examples = steps * global_batch + rest
            x, y, start = problem_in(examples, 5, 4, rng)
            case = diagnosis.Epoch(x, y, start, n, global_batch, rate, serial_loss, serial_gradient)
            model, optimizer = diagnosis.watched_model(strategy, start, rate)
            result = ask(train_epoch, strategy, model, optimizer, x.copy(), y.copy(), global_batch)
            counts, mass = (
                [float(part) for part in strategy.experimental_local_results(variable)]
                for variable in (model.seen, model.mass)
            )
            losses, weights = array(result).ravel(), array(model.trainable_variables[0])
            judged["shards"].append(
                (
                    case.shards_problem(counts),
                    [sum(counts), max(counts) <= case.share(), min(counts) > 0, sum(mass)],
                )
            )
            judged["losses"].append((case.losses_problem(losses), losses))
            judged["weights"].append((case.weights_problem(weights, losses), weights))
        _judge_all(report, judged, {"shards": 1e-4, "weights": 1e-4})

"""The half of unit 06's checks of `no_sync` that runs on the ranks.

There are backward passes that send nothing, and the one after them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from manyhands.checks.ddp.ranks import batch, build, shapes
from manyhands.checks.ddp.step_ranks import Log, gradients, other_start, right_buckets
from manyhands.checks.on_ranks import learners

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from manyhands.checks.ddp.answers import AccumulationAnswer, SilentAnswer

    NoSync = Callable[[Any], AbstractContextManager[Any]]


def silent_hooks(class_name: str, finish_name: str, seed: int) -> SilentAnswer:
    """A backward pass while `sync` is False, and one after it.

    It reports what the first has sent, and when the second sends.
    """
    from torch.nn.functional import mse_loss

    from manyhands.ledger import Ledger

    x, y = batch(seed, 4)
    model = build(seed, seed)
    log, ddp, finish = (
        Log(model),
        learners(class_name)(model, shapes(seed)[2], None),
        learners(finish_name),
    )
    ddp.sync = False
    with Ledger() as ledger:
        mse_loss(ddp(x), y).backward()
        finish(ddp)
    ddp.sync = True
    log.events.clear()
    loss = mse_loss(ddp(x), y)
    with Ledger(on_entry=log.sent):
        loss.backward()
        log.end()
        finish(ddp)
    return {
        "sent": ledger.count("allreduce"),
        "events": list(log.events),
        "buckets": right_buckets(model, shapes(seed)[2]),
    }


def accumulation(
    class_name: str, finish_name: str, no_sync_name: str, seed: int
) -> AccumulationAnswer:
    """Three micro-batches against the serial model on the whole batch.

    The first two are without communication, and the second is in nested blocks.
    """
    import torch.distributed as dist
    from torch.nn.functional import mse_loss

    from manyhands.ledger import Ledger

    rank, world_size, rows = dist.get_rank(), dist.get_world_size(), 9
    x, y = batch(seed, rows * world_size)
    serial, model = (build(seed, 1000 * seed + r) for r in (0, rank))
    ddp = learners(class_name)(model, shapes(seed)[2], None)
    start_differs = other_start(model, serial)
    finish, no_sync = learners(finish_name), learners(no_sync_name)
    mse_loss(serial(x), y).backward()
    start = rows * rank
    sent: list[int] = []
    noted: list[bool] = []
    for i in range(3):
        part = slice(start + 3 * i, start + 3 * i + 3)
        with ExitStack() as blocks, Ledger() as ledger:
            for _ in range((1, 3, 0)[i]):
                blocks.enter_context(no_sync(ddp))
            (mse_loss(ddp(x[part]), y[part]) / 3).backward()
            finish(ddp)
        noted.append(bool(getattr(ddp, "ready", ())) or bool(getattr(ddp, "flying", ())))
        sent.append(ledger.count("allreduce"))
    other = learners(class_name)(build(seed, seed), shapes(seed)[2], None)
    return {
        "start": start_differs,
        "sent": sent,
        "buckets": len(right_buckets(model, shapes(seed)[2])),
        "got": gradients(model),
        "serial": gradients(serial),
        "noted": any(noted[:2]),
        "promises": [
            [name, bool(situation(ddp, other, no_sync))] for name, situation in SITUATIONS.items()
        ],
    }


# ------------------------------------------------------------------ what may happen in a block


def _after_a_block(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    ddp.sync = True
    for _ in range(2):
        with no_sync(ddp):
            silent = not ddp.sync
    return silent and ddp.sync


def _nested(ddp: Any, no_sync: NoSync, depth: int) -> tuple[list[Any], list[Any], Any]:
    """`sync` in each of some nested blocks, before and after the inner ones, and after all."""
    ddp.sync = True
    before: list[Any] = []
    after: list[Any] = []

    def block(depth: int) -> None:
        with no_sync(ddp):
            before.append(ddp.sync)
            if depth:
                block(depth - 1)
            after.append(ddp.sync)

    block(depth)
    return before, after, ddp.sync


def _in_an_inner_block(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    return not any(any(_nested(ddp, no_sync, depth)[0]) for depth in (1, 2, 3))


def _after_an_inner_block(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    return all(
        not any(after) and last
        for _, after, last in (_nested(ddp, no_sync, depth) for depth in (1, 2, 3))
    )


def _raised(ddp: Any, no_sync: NoSync, error: BaseException) -> tuple[BaseException | None, Any]:
    """(what comes out of a block in which this is raised, `sync` after it)."""
    try:
        with no_sync(ddp):
            raise error
    except BaseException as came:  # noqa: BLE001 - whatever the learner's block makes of it
        return came, ddp.sync
    return None, ddp.sync


ERRORS = (KeyError("in the block"), KeyboardInterrupt(), StopIteration(), GeneratorExit())


def _after_an_error(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    ddp.sync = True
    return all(_raised(ddp, no_sync, error)[1] for error in ERRORS[:2])


def _error_comes_out(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    return all(_raised(ddp, no_sync, error)[0] is not None for error in ERRORS)


def _the_same_error(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    return all(_raised(ddp, no_sync, error)[0] is error for error in ERRORS)


def _after_an_inner_error(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    ddp.sync = True
    with no_sync(ddp):
        inner = _raised(ddp, no_sync, KeyError("in an inner block"))[1]
    return ddp.sync and not inner


def _left_early(ddp: Any, _: Any, no_sync: NoSync) -> bool:
    ddp.sync = True
    holds: list[Any] = []

    def returns() -> Any:
        with no_sync(ddp):
            return "early"

    def suspends() -> Generator[None, None, None]:
        with no_sync(ddp):
            yield

    holds.append(returns() == "early" and ddp.sync)
    for _ in range(2):
        with no_sync(ddp):
            break
    holds.append(ddp.sync)
    suspended = suspends()
    next(suspended)
    holds.append(not ddp.sync)
    suspended.close()
    return all(holds) and ddp.sync


def _two_models(ddp: Any, other: Any, no_sync: NoSync) -> bool:
    ddp.sync = other.sync = True
    with no_sync(ddp):
        alone = other.sync
        with no_sync(other):
            both = not ddp.sync and not other.sync
        back = other.sync and not ddp.sync
    return alone and both and back and ddp.sync and other.sync


SITUATIONS = {
    "after a block": _after_a_block,
    "in an inner block": _in_an_inner_block,
    "after an inner block": _after_an_inner_block,
    "after an error": _after_an_error,
    "error swallowed": _error_comes_out,
    "another error": _the_same_error,
    "after an inner error": _after_an_inner_error,
    "left early": _left_early,
    "two models": _two_models,
}

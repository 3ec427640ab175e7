"""Run unit 10's experiments with the learner's functions on the ranks, and return plain numbers.

All ranks of Horovod's world run an experiment simultaneously, while ranks outside of it return
None. Shapes and numbers are drawn from the seed in the same way on all of them, so that each rank
can also compute alone what is right and what the likely mistakes would give (`looks` names the one
that fits). Everything is float64.
"""

from __future__ import annotations

import copy
import os
import random
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import horovod.torch as hvd
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import close, looks_like, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from manyhands.checks.horovod.answers import EpochCase, FinishedCase, FittedCase, ResumedCase

ATOL = 1e-9


def leave(size: int | None) -> bool:
    """Return whether Horovod's world has this size already, and end it if not.

    The size None means all ranks.
    """
    wanted = size or int(os.environ["WORLD_SIZE"])
    if hvd.is_initialized() and hvd.size() == wanted:
        return True
    hvd.shutdown()
    return False


def enter(size: int | None) -> None:
    """Start Horovod with only the ranks below `size`, after all ranks have left the world.

    The size None means all ranks.
    """
    from manyhands.cluster.horovod import rendezvous

    rendezvous(size)
    if size is None or int(os.environ["RANK"]) < size:
        hvd.init()


def numbers(tensor: torch.Tensor) -> list[float]:
    """Return a tensor's numbers in one list."""
    return [float(number) for number in tensor.detach().flatten()]


def flat(tensors: Iterable[Any]) -> torch.Tensor:
    """Return tensors, or what can become tensors, as one float64 vector."""
    return torch.cat(
        [torch.as_tensor(tensor, dtype=torch.float64).detach().flatten() for tensor in tensors]
    )


def problem(seed: int, n: int) -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    """Draw a network and n rows."""
    draw = random.Random(seed)
    inputs, hidden, classes = draw.randint(4, 7), draw.randint(3, 6), draw.randint(3, 5)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes)).double()
    return model, torch.randn(n, inputs, dtype=torch.float64), torch.randint(classes, (n,))


# ------------------------------------------------------------------ 1: what diagnose is given


def symptoms(missing: Sequence[str], seed: int) -> list[dict[str, float]]:
    """Return the numbers of one training run for each name in `missing`.

    These are the edits, "rounding" and "nobody" (see `diagnosis.ANSWERS`). A missing edit shows
    only a little, as in small distances or a single row that is counted twice.
    """
    return [_symptoms(edit, seed + k) for k, edit in enumerate(missing)]


def _symptoms(missing: str, seed: int) -> dict[str, float]:
    draw, p, rank = random.Random(seed), hvd.size(), hvd.rank()
    n = p * draw.randint(3, 9)
    model, x, y = problem(seed, n)
    if missing in ("start", "rounding"):
        with torch.no_grad():
            cast("nn.Linear", model[0]).weight.add_(rank * (1e-7 if missing == "start" else 1e-13))
    rows = torch.arange(rank, n, p)
    if missing == "rows":
        rows[-1] = 0  # which rank 0 has too
    optimiser = torch.optim.SGD(
        model.parameters(), lr=draw.uniform(0.1, 0.4) * (1e-6 if missing == "gradients" else 1)
    )
    if missing != "gradients":
        optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters())
    before = _apart(model)
    for _ in range(draw.randint(3, 6)):
        optimiser.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
    writes = hvd.local_rank() == 0 if missing == "files" else rank == 0 and missing != "nobody"
    seen = hvd.allgather(rows)
    return {
        "apart_at_start": before,
        "apart_at_end": _apart(model),
        "rows_counted": len(seen),
        "rows_there": len(set(seen.tolist())),
        "writers": hvd.allreduce(torch.tensor(int(writes)), op=hvd.Sum).item(),
    }


def _apart(model: nn.Module) -> float:
    """Return the largest distance between two ranks' weights."""
    own = flat(model.parameters())
    everyones = hvd.allgather(own[None])
    return (
        torch.cdist(everyones, everyones, compute_mode="donot_use_mm_for_euclid_dist").max().item()
    )


# ------------------------------------------------------------------ 2: resume


def resumed(name: str, seed: int) -> ResumedCase:
    """Resume a checkpoint of rank 0 through the learner's function."""
    function, draw = learners(name), random.Random(seed)
    inputs, hidden, rate, step = (
        draw.randint(3, 6),
        draw.randint(3, 5),
        draw.uniform(0.1, 0.5),
        draw.randint(10, 999),
    )
    # the ranks' own momentum and weight decay differ
    settings = [rate, draw.uniform(0.5, 0.7), draw.uniform(0.01, 0.1)]
    path = os.path.join(os.environ["MANYHANDS_NODE_DIR"], f"check-resume-{seed}-{hvd.rank()}.pt")
    model, optimiser = _with_memory(inputs, hidden, settings, seed)
    if hvd.rank() == 0:
        for _ in range(3):
            optimiser.zero_grad()
            model(torch.randn(8, inputs, dtype=torch.float64)).square().sum().backward()
            optimiser.step()
        torch.save(
            {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}, path
        )
    right = hvd.broadcast_object(
        (_state(model), _momenta(model, optimiser)) if hvd.rank() == 0 else None,
        root_rank=0,
        name="right",
    )
    hvd.barrier()
    model, optimiser = _with_memory(
        inputs, hidden, [rate * (2 + hvd.rank()), 0.9, 0.2], seed + 1 + hvd.rank()
    )
    begin, decay = _state(model), optimiser.param_groups[0]["weight_decay"]
    try:
        returned = function(model, optimiser, path)
    finally:
        if os.path.exists(path):
            os.remove(path)
    state, momenta, group_settings = (
        _state(model),
        _momenta(model, optimiser),
        [[float(group[key]) for key in SETTINGS] for group in optimiser.param_groups],
    )
    cut = sum(p.numel() for p in model.parameters())
    looks = looks_like(state, right[0], {"own": begin})
    if looks == "other":
        # what weight decay makes of them in a step with gradients of zero
        shrunk = right[0][:cut] * (1 - rate * (2 + hvd.rank()) * decay)
        looks = (
            "stepped"
            if close(state[:cut], shrunk)
            else "buffers"
            if close(state[:cut], right[0][:cut])
            else "other"
        )
    return {
        "state": numbers(state),
        "right": numbers(right[0]),
        "looks": looks,
        "momenta": numbers(momenta),
        "right momenta": numbers(right[1]),
        "settings": group_settings,
        "right settings": settings,
        "returned": int(returned) if isinstance(returned, Integral) else repr(returned)[:40],
        "step": step,
    }


SETTINGS = ("lr", "momentum", "weight_decay")


def _with_memory(
    inputs: int, hidden: int, settings: Sequence[float], seed: int
) -> tuple[nn.Sequential, torch.optim.SGD]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden)).double()
    options: dict[str, Any] = dict(zip(SETTINGS, settings, strict=True))
    return model, torch.optim.SGD(model.parameters(), **options)


def _state(model: nn.Module) -> torch.Tensor:
    """Return all parameters, and then all buffers."""
    return flat([*model.parameters(), *model.buffers()])


def _momenta(model: nn.Module, optimiser: torch.optim.Optimizer) -> torch.Tensor:
    """Return the momenta, with zeros for those that do not exist.

    Both have the same effect.
    """
    momenta = [optimiser.state[p].get("momentum_buffer") for p in model.parameters()]
    return flat(
        [
            torch.zeros_like(p) if momentum is None else momentum
            for p, momentum in zip(model.parameters(), momenta, strict=True)
        ]
    )


# ------------------------------------------------------------------ 3: fit


def fitted(name: str, seed: int) -> FittedCase | None:
    """Train on shards of different sizes through the learner's function.

    The result is compared with a single process.
    """
    function = learners(name)
    if not hvd.is_initialized():
        return None
    p, draw = hvd.size(), random.Random(seed)
    sizes = [draw.randint(6, 9), draw.randint(2, 5), 1, draw.randint(3, 4)][:p]
    draw.shuffle(sizes)
    sizes[0] += sum(sizes) == p * p  # or "mean of sums" and "times p" would be the same steps
    n, rate, steps = sum(sizes), draw.uniform(0.2, 0.5), draw.randint(4, 7)
    model, x, y = problem(seed, n)
    begin, pieces = copy.deepcopy(model), list(zip(x.split(sizes), y.split(sizes), strict=True))
    function(model, *(rows.clone() for rows in pieces[hvd.rank()]), rate, steps)
    means = lambda m: [cross_entropy(m(a), b) for a, b in pieces]  # noqa: E731
    whole = lambda m: cross_entropy(m(x), y)  # noqa: E731
    right = _alone(begin, whole, rate, steps)
    wrong = {
        "own": _alone(begin, lambda m: means(m)[hvd.rank()], rate, steps),
        "mean of means": _alone(begin, lambda m: total(means(m)) / p, rate, steps),
        "sum of means": _alone(begin, lambda m: total(means(m)), rate, steps),
        "not divided": _alone(begin, lambda m: n * whole(m), rate, steps),
        "divided again": _alone(begin, lambda m: whole(m) / p, rate, steps),
        "mean of sums": _alone(begin, lambda m: n / p * whole(m), rate, steps),
        "times p": _alone(begin, lambda m: p * whole(m), rate, steps),
        "accumulated": _alone(begin, whole, rate, steps, keep=1),
        "accumulated and summed": _alone(begin, whole, rate, steps, keep=p),
        "nothing": flat(begin.parameters()),
    }
    got = flat(model.parameters())
    return {
        "got": numbers(got),
        "right": numbers(right),
        "looks": looks_like(got, right, wrong),
        "sizes": sizes,
    }


def _alone(
    begin: nn.Module,
    loss_of: Callable[[nn.Module], torch.Tensor],
    rate: float,
    steps: int,
    keep: int = 0,
) -> torch.Tensor:
    """Return the weights that a single process ends with.

    If `keep` is not 0, it makes the mistake of adding `keep` times the last gradient to the next.
    """
    model = copy.deepcopy(begin)
    for _ in range(steps):
        gradients = torch.autograd.grad(loss_of(model), list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.grad = gradient + keep * (0 if parameter.grad is None else parameter.grad)
                parameter.sub_(rate * parameter.grad)
    return flat(model.parameters())


# ------------------------------------------------------------------ 4: epoch_of


def epochs(name: str, seed: int) -> list[EpochCase] | None:
    """Run two epochs of some sizes through the learner's function.

    The only communication is the check's own.
    """
    function = learners(name)
    cases: list[EpochCase] = []
    if not hvd.is_initialized():
        return None
    p, draw = hvd.size(), random.Random(seed)
    for k in range(3):
        rows, whole = draw.randint(2, 4), (draw.randint(3, 6), draw.randint(2, 4), 0)[k]
        # once nothing is left over
        n = whole * rows * p + (0 if k == 1 else draw.randint(1, rows * p - 1))
        base, epoch = draw.uniform(0.01, 0.2), draw.randint(1, 9)
        torch.manual_seed(seed + hvd.rank())
        orders: list[list[list[int]]] = []
        rates: list[float] = []
        before = torch.get_rng_state()
        for number in (epoch, epoch + 1, epoch):
            steps, rate = function(n, rows, number, base)
            orders.append([torch.as_tensor(step).flatten().tolist() for step in steps])
            rates.append(float(rate))
        right = [
            torch.randperm(n, generator=torch.Generator().manual_seed(number)).tolist()
            for number in (epoch, epoch + 1, epoch)
        ]
        cases.append(
            {
                "n": n,
                "rows": rows,
                "p": p,
                "base": base,
                "orders": orders,
                "rates": rates,
                "right orders": right,
                "reseeded": not torch.equal(torch.get_rng_state(), before),
            }
        )
    return cases


# ------------------------------------------------------------------ 5: finish


def finished(name: str, seed: int) -> FinishedCase | None:
    """Run the end of a training run through the learner's function.

    Return which ranks wrote what, and what each rank returned.
    """
    function = learners(name)
    if not hvd.is_initialized():
        return None
    draw = random.Random(seed)
    losses = [draw.uniform(0.1, 3) for _ in range(hvd.size())]
    model, _, _ = problem(seed, 1)
    path = os.path.join(
        os.environ["MANYHANDS_NODE_DIR"], f"check-finish-{seed}-{hvd.size()}-{hvd.rank()}.pt"
    )
    right = numbers(flat(model.state_dict().values()))
    returned = function(model, losses[hvd.rank()], path)
    checkpoint: Any = None
    if os.path.exists(path):
        checkpoint = _loaded(path)
        os.remove(path)
    complete = isinstance(checkpoint, dict) and {"model", "loss"} <= set(checkpoint)
    return {
        "losses": losses,
        "wrote": checkpoint is not None,
        "loss": float(checkpoint["loss"]) if complete else None,
        "weights": (
            numbers(flat(checkpoint["model"].values()))
            if complete and isinstance(checkpoint["model"], dict)
            else None
        ),
        "right weights": right,
        "returned": float(returned) if isinstance(returned, Real) else None,
        "tensor": isinstance(returned, torch.Tensor),
    }


def _loaded(path: str) -> Any:
    """Return the content of a file, or the error of torch.load.

    It is an error if the file has anything except tensors and plain data, for example a whole
    model.
    """
    try:
        return torch.load(path)
    except Exception as error:  # noqa: BLE001 - of pickle, of zip files, of torch
        return error

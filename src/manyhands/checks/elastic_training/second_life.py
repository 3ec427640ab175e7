"""A training on a few ranks that is stopped and started again: what the learner's `life` does, and what it should do."""

import numpy as np

from manyhands.checks.elastic_training.words import MISTAKES
from manyhands.checks.in_kernel import call

EVERY, ROWS, RATE, MOMENTUM = 5, 24, 0.2, 0.9  # as the faulty training says
ATOL = 1e-9


def batch_of(seed):
    """A function of a step: (x, y), the whole batch of this step."""
    import torch

    def batch(step):
        draw = np.random.default_rng([seed % 2**32, step])
        return torch.from_numpy(draw.normal(size=(ROWS, 64))), torch.from_numpy(draw.integers(0, 10, ROWS))

    return batch


def lived(life, folder, until, seed):
    """On a rank: (error, the steps whose batch was asked for, the weights at the end)."""
    batch, steps = batch_of(seed), []

    def counted(step):
        steps.append(int(step))
        return batch(int(step))

    net, error = call(life, folder, until, counted)
    if error:
        return error, steps, []
    try:
        return "", steps, np.concatenate([weight.detach().numpy().ravel() for weight in net.parameters()]).tolist()
    except Exception:  # a learner's answer may be anything
        return MISTAKES["no network"], steps, []


def saved_before(until):
    """The number of steps in the newest checkpoint of a life that has ended before step `until`."""
    return until // EVERY * EVERY


def calm(stops, seed, momentum=True, shift=0):
    """The weights of one process that lives as often as there are stops. Mistakes: a life begins without momenta, or `shift` steps off."""
    import torch
    from torch.nn.functional import cross_entropy

    torch.manual_seed(0)
    net, batch, saved = torch.nn.Linear(64, 10).double(), batch_of(seed), None
    first = [weight.detach().clone() for weight in net.parameters()]
    for until in stops:
        weights, moving, start = saved or (first, [torch.zeros_like(weight) for weight in first], 0)
        weights, moving = ([one.clone() for one in kept] for kept in (weights, moving))
        if saved and not momentum:
            moving = [torch.zeros_like(weight) for weight in first]
        for step in range(start + shift * bool(saved), until):
            for weight, value in zip(net.parameters(), weights):
                weight.data.copy_(value)
            x, y = batch(step)
            slopes = torch.autograd.grad(cross_entropy(net(x), y), list(net.parameters()))
            for weight, moved, slope in zip(weights, moving, slopes):
                moved.mul_(MOMENTUM).add_(slope)
                weight.sub_(RATE * moved)
            if (step + 1) % EVERY == 0:
                saved = [weight.clone() for weight in weights], [moved.clone() for moved in moving], step + 1
    return np.concatenate([weight.numpy().ravel() for weight in weights])


def steps_problem(lives, stops):
    """`lives`: for each life what the ranks gave (see `lived`)."""
    for number, (ranks, until) in enumerate(zip(lives, stops), 1):
        start = saved_before(stops[number - 2]) if number > 1 else 0
        for rank, (_, steps, _) in enumerate(ranks):
            if steps != list(range(start, until)):
                return _say(_kind_of_steps(steps, start, until), f"steps {start} to {until - 1}", _in_words(steps), life=number, rank=rank, start=start)
    return None


def _kind_of_steps(steps, start, until):
    if not steps or steps != list(range(steps[0], steps[-1] + 1)) or steps[-1] != until - 1:
        return "life other steps"
    if steps[0] == 0:
        return "life from nothing"
    return "life twice" if steps[0] < start else "life skipped"


def _in_words(steps):
    return f"steps {steps[0]} to {steps[-1]}" if steps and steps == list(range(steps[0], steps[-1] + 1)) else f"steps {steps}"


def from_rank_0(lives):
    """How far the weights of each rank are from rank 0's at the end of each life; -1 where they cannot be compared."""
    return [[_apart(weights, ranks[0][2]) if len(weights) == len(ranks[0][2]) != 0 else -1.0 for *_, weights in ranks] for ranks in lives]


def ranks_problem(lives):
    for number, ranks in enumerate(lives, 1):
        for rank, (_, _, weights) in enumerate(ranks):
            if (apart := _apart(weights, ranks[0][2])) > ATOL:
                return _say("life apart", "0 from rank 0", f"{apart:.3g}", life=number, rank=rank)
    return None


def weights_problem(lives, stops, seed):
    """That of rank 0's weights after each life."""
    for number, ranks in enumerate(lives, 1):
        until, got = stops[:number], ranks[0][2]
        right = calm(until[-1:], seed)
        if _apart(got, right) <= ATOL:
            continue
        looks = {"life no momentum": calm(until, seed, momentum=False), "life off by one": calm(until, seed, shift=-1), "life skips one": calm(until, seed, shift=1)}
        name = next((name for name, weights in looks.items() if number > 1 and _apart(got, weights) <= ATOL), "life other weights")
        return _say(name, right[:3].tolist(), list(got[:3]), life=number)
    return None


def _apart(got, right):
    return float(np.abs(np.subtract(got, right)).max()) if len(got) == len(right) and len(got) else float("inf")


def _say(name, expected, got, **words):
    return {"expected": expected, "got": got, "mistake": MISTAKES[name].format(**words)}

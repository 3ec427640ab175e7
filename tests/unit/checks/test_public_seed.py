"""What passes in a learner's notebook passes in the grade.

The public seed draws every kind of case that a hidden seed draws. A kind is what can make a wrong
answer right by chance: a remainder that is zero, a group that begins with rank 0, a circle of two
ranks. The cases come from the generators of the checks themselves, without ranks. Numbers that are
only larger or smaller are no kind. A new generator with kinds belongs into KINDS.
"""

import random

import pytest

from manyhands.checks.preflight import plans

PUBLIC, HIDDEN = 0, range(1, 30)


def hangs(seed):
    """Lab 00: chains and circles of two or more ranks.

    There are ranks that have finished, and ranks that wait for one that waits.
    """
    draw, kinds = random.Random(f"diagnose {seed}"), set()
    for name in ("absent", "chain", "circle"):
        for world_size in range(4, 9):
            plan, (_, ranks) = plans.draw_plan(name, draw, world_size, mixed=world_size % 2 == 0)
            waits = [peer for peer in plan.values() if isinstance(peer, int)]
            kinds |= {
                (name, "ranks", min(len(ranks), 3)),
                (name, "finished", None in plan.values()),
                (name, "barrier", plans.BARRIER in plan.values()),
                (name, "fork", len(waits) > len(set(waits))),
            }
    return kinds


def shards(seed):
    """Lab 01: whether the ranks divide the rows, and whether there are fewer rows than ranks."""
    from manyhands.checks.data_parallel import ranks

    return {(n % p == 0, n < p, p == 1) for n, p in ranks.sizes(random.Random(seed))}


def devices(seed):
    """Lab 03: whether the first piece has to be moved, and the last one."""
    from manyhands.checks.torch_dataparallel import with_torch

    return {(order[0], order[-1]) for order in with_torch.orders(random.Random(seed + 2))}


def ties(seed):
    """Lab 03: which layers of the network share a weight, where it counts."""
    from manyhands.checks.torch_dataparallel import replicas_with_torch

    seen = set()
    for experiment in (replicas_with_torch.replicate_tied, replicas_with_torch.replicate_gradients):

        def spy(module, places, name=experiment.__name__):
            weights = [layer.weight for layer in module.chain]
            seen.add(
                (
                    name,
                    *(
                        next(i for i, known in enumerate(weights) if known is weight)
                        for weight in weights
                    ),
                )
            )
            return [module] * len(places)

        experiment(spy, seed)
    return seen


def groups(seed):
    """Lab 04: whether a group of this many ranks has rank 0.

    This is where a rank of the world is taken for one of the group.
    """
    from manyhands.checks.collectives import ranks

    return {
        (made.__name__, len(members), members[0] == 0)
        for made in (ranks.members_of, ranks.powers_of_two)
        for members in made(seed)
        if len(members) < 4
    }


def worlds(seed):
    """Lab 05: powers of two, one more, one rank alone.

    There are sizes on both sides of the crossing of ring and tree.
    """
    from manyhands.checks.communication_costs import cases

    return {(min(p, 5), p & (p - 1) == 0) for p, *_ in cases.worlds(seed)}


KINDS = [hangs, shards, devices, ties, groups, worlds]


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: kinds.__name__)
def test_the_public_seed_draws_every_kind_of_case_that_a_hidden_one_draws(kinds):
    hidden = set().union(*(kinds(seed) for seed in (HIDDEN if kinds is not ties else range(1, 9))))
    assert hidden - kinds(PUBLIC) == set()

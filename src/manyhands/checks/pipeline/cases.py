"""What unit 14's checks ask for, drawn from a seed: pipelines, orders, networks to cut, and jobs to plan."""

import random
from collections import namedtuple
from itertools import combinations
from types import SimpleNamespace

ORDERS = ("gpipe", "1f1b")
Numbers = namedtuple("Numbers", "memory idle price")  # of a plan of exercise 6


def pipelines(seed):
    """[(stages, micro-batches)] for exercise 2: more, as many and fewer micro-batches than stages, and one stage. Fewer is fewer than a
    warm-up of stages - 1, else who forgets that case is right."""
    draw = random.Random(f"orders {seed}")
    stages = draw.randint(3, 6)
    return [(4, draw.randint(6, 11)), (stages, stages), (5, draw.randint(2, 3)), (2, draw.randint(3, 9)), (1, draw.randint(2, 9))]


def bubbles(seed):
    """[(stages, micro-batches, chunks)]: five with one chunk, five with more."""
    draw = random.Random(f"bubble {seed}")
    return [(draw.randint(3, 16), draw.randint(5, 64), chunks if chunks == 1 else draw.randint(2, 6)) for chunks in (1, 2) for _ in range(5)]


def timings(seed, messages):
    """[(orders, forward_s, backward_s, message_s)] for exercise 3."""
    draw, found = random.Random(f"finish {seed} {messages}"), []
    for name in ("gpipe", "1f1b", "1f1b", "odd"):
        stages, micro_batches = draw.randint(2, 5), draw.randint(3, 7)
        orders = odd(draw, stages, micro_batches) if name == "odd" else plain(name, stages, micro_batches)
        forward_s, backward_s = ([round(draw.uniform(0.5, 3) * times, 3) for _ in range(stages)] for times in (1, 2))
        found.append((orders, forward_s, backward_s, round(draw.uniform(0.2, 2), 3) if messages else 0.0))
    return found


def deadlocks(seed):
    """[(orders, whether they can be done)] for exercise 3."""
    draw, found = random.Random(f"stuck {seed}"), []
    for broken in (None, "circle", None, "own forward", "circle"):
        stages, micro_batches = draw.randint(2, 5), draw.randint(3, 7)
        orders = odd(draw, stages, micro_batches)
        if broken == "own forward":  # the last rank is to do a backward before its forward: on another one that is a circle too
            order, m = orders[-1], draw.randrange(micro_batches)
            first, second = order.index(("F", m)), order.index(("B", m))
            order[first], order[second] = order[second], order[first]
        elif broken:  # one rank waits for its first gradient, the next one for all activations
            orders = plain("gpipe", stages, micro_batches)
            orders[draw.randrange(stages - 1)] = [(kind, m) for m in range(micro_batches) for kind in "FB"]
        found.append((orders, broken is None))
    draw.shuffle(found)
    return found


def odd(draw, stages, micro_batches, in_turn=False):
    """Orders that nobody would choose, and that can be done: time and again some rank does some event that is possible.
    `in_turn`: all ranks take micro-batches in one order, so that messages need no tags."""
    ready = [{"F": [], "B": []} for _ in range(stages)]  # micro-batches whose activation, whose gradient is there
    ready[0]["F"] += range(micro_batches)
    orders = [[] for _ in range(stages)]
    while any(len(order) < 2 * micro_batches for order in orders):
        rank, kind = draw.randrange(stages), draw.choice("FB")
        if waiting := ready[rank][kind]:
            m = waiting.pop(0 if in_turn else draw.randrange(len(waiting)))
            orders[rank].append((kind, m))
            if kind == "F":
                (ready[rank + 1]["F"] if rank + 1 < stages else ready[rank]["B"]).append(m)
            elif rank > 0:
                ready[rank - 1]["B"].append(m)
    return orders


def plain(name, stages, micro_batches):
    """The orders of GPipe or 1F1B as the lab writes them: [[("F", 0), ...] for each rank]."""
    from manyhands.simulate import pipeline

    orders = {"gpipe": pipeline.gpipe, "1f1b": pipeline.one_f_one_b}[name](stages, micro_batches)
    return [[(kind, m) for kind, m, _ in order] for order in orders]


def played(orders, forward_s, backward_s, message_s=0.0):
    """The lab's orders, played: for each rank a list of spans. `Stuck` if they cannot be done."""
    from manyhands.simulate.pipeline import Event, play

    events = [[Event(kind, m, rank) for kind, m in order] for rank, order in enumerate(orders)]
    return play(events, lambda event: {"F": forward_s, "B": backward_s}[event.kind][event.stage], message_s)


def networks(seed):
    """[(costs, stages)] for exercise 4: whole numbers, so that sums are exact. In the first four neither equal numbers of layers nor
    filling up to the mean is best, in one of them not the least sum of squares, in one not the least spread. In the fifth a
    layer is so dear that many cuts are best, and would be with an empty stage."""
    draw, found, measures = random.Random(f"cut {seed}"), [], [squares, spread, None, None]
    while measures:
        layers, stages = draw.randint(7, 11), draw.randint(3, 5)
        costs = [draw.choice((1, 2, 3, 5, 8, 13)) * draw.randint(3, 9) for _ in range(layers)]
        wrong, evened = [even_cut(costs, stages), greedy_cut(costs, stages)], [least(measure, costs, stages) for measure in (squares, spread)]
        if any(way in wrong for way in evened):
            continue  # the mistake would be taken for another one
        if measures[0]:
            wrong.append(least(measures[0], costs, stages))
        if smallest(costs, stages) < min(dearest(costs, way) for way in wrong):
            found.append((costs, stages))
            measures.pop(0)
    small = [draw.randint(2, 9) for _ in range(5)]
    return [*found, ([*small[:3], sum(small) + 1, *small[3:]], 4), ([draw.randint(2, 9) for _ in range(4)], 4), ([draw.randint(2, 9) for _ in range(6)], 1)]


def ways(costs, stages):
    """All cuts."""
    borders = combinations(range(1, len(costs)), stages - 1)
    return [[slice(*pair) for pair in zip((0, *inner), (*inner, len(costs)))] for inner in borders]


def dearest(costs, blocks):
    return max(sum(costs[block]) for block in blocks)


def squares(costs, blocks):
    return sum(sum(costs[block]) ** 2 for block in blocks)


def spread(costs, blocks):
    sums = [sum(costs[block]) for block in blocks]
    return max(sums) - min(sums)


def least(measure, costs, stages):
    """The cut for which `measure(costs, cut)` is least."""
    return min(ways(costs, stages), key=lambda way: measure(costs, way))


def smallest(costs, stages):
    """The cost of the dearest block of the best cut."""
    return dearest(costs, least(dearest, costs, stages))


def even_cut(costs, stages):
    """Blocks with equal numbers of layers."""
    return [slice(len(costs) * i // stages, len(costs) * (i + 1) // stages) for i in range(stages)]


def greedy_cut(costs, stages):
    """Block after block filled up to the mean; the last one gets what is left."""
    borders, mean = [0], sum(costs) / stages
    for stage in range(stages - 1):
        stop = borders[-1] + 1
        while stop < len(costs) - (stages - stage - 1) and sum(costs[borders[-1]:stop + 1]) <= mean:
            stop += 1
        borders.append(stop)
    return [slice(*pair) for pair in zip(borders, [*borders[1:], len(costs)])]


# --- exercise 6 -------------------------------------------------------------------------------------------------------


TRAPS = {  # kind of a job: a short way of thinking, as arguments of `evaluate`, that leads to another plan there
    "memory": {"alive": lambda schedule, stages, count, rank: count if schedule == "gpipe" else min(count, stages)},
    "messages": {"message": 0},
    "many": {"starts": (1, 0)},
    "starts": {"starts": (1, 2)},
    "fullest": {"fullest": lambda needs: sum(needs) / len(needs)},
    "few": {"alive": lambda schedule, stages, count, rank: count if schedule == "gpipe" else stages - rank},
    "idle": None,  # to forget the limit
}
FEW = [5e7] * 6 + [2e8] * 2 + [3.2e8] + [3.5e8] * 3, [1.1e9] * 6 + [5.5e8] * 6  # weights and kept bytes of the layers of "few"
BETWEEN = {"many": "idle", "starts": "idle", "fullest": "memory"}  # the limit that lies between the right number and the short way's


def jobs(seed):
    """Jobs of exercise 6, of each kind one: [(job, {plan: `evaluate` of it})]. In each the second best plan costs 3 %
    more than the best, and some short way of thinking goes wrong."""
    draw = random.Random(f"plan {seed}")
    return [_job(draw, kind) for kind in TRAPS]


def _job(draw, kind):
    while True:
        job = _draw_job(draw, kind)
        plans = {plan: evaluate(job, *plan) for plan in every_plan(job)}
        thought = TRAPS[kind] and {plan: evaluate(job, *plan, **TRAPS[kind]) for plan in every_plan(job)}
        cheap = next((plan for _, plan in by_price(job, plans)), None)
        if cheap and kind == "idle":  # the bubble of the plan that would be cheapest is just too large
            job.idle = 0.99 * plans[cheap].idle
        elif cheap and kind in BETWEEN:
            _set_between(job, BETWEEN[kind], plans[cheap], thought[cheap])
        costs = by_price(job, plans)
        if len(costs) < 2 or costs[1][0] < 1.03 * costs[0][0]:
            continue
        stages, count, schedule = best = costs[0][1]
        wanted = {"memory": schedule == "1f1b" and not fits(job, plans[stages, count, "gpipe"]), "messages": schedule == "gpipe",
                  "many": count < max(job.micro_batches), "few": count < stages}
        if stages > 1 and wanted.get(kind, True) and not (thought and best in [plan for _, plan in by_price(job, thought)[:1]]):
            return job, plans


def _set_between(job, limit, right, thought):
    between = (getattr(right, limit) + getattr(thought, limit)) / 2
    setattr(job, {"memory": "memory_bytes"}.get(limit, limit), between)


def by_price(job, plans):
    """[(price, plan)] of those that fit, the cheapest first."""
    return sorted((numbers.price, plan) for plan, numbers in plans.items() if fits(job, numbers))


def _draw_job(draw, kind):
    few = kind == "few"
    batch, layers = 8 if few else draw.choice((8, 12)), [draw.uniform(0.5, 1.5) for _ in range(12)]
    cuts = {stages: [slice(12 * i // stages, 12 * (i + 1) // stages) for i in range(stages)] for stages in (1, 2, 3, 4)}
    weights, kept = ([draw.uniform(1, 3) * times for _ in range(12)] for times in (1e8, 4e8))
    if few:  # the first stages keep the most, and the last one has the most weights
        weights, kept = ([draw.uniform(0.95, 1.05) * one for one in shape] for shape in FEW)
    forward_s, weight_bytes, kept_bytes = ({stages: [sum(numbers[block]) for block in blocks] for stages, blocks in cuts.items()}
                                           for numbers in (layers, weights, kept))
    start_s, message_s, parts = {"messages": ((0.01, 0.03), (0.2, 0.5), (1.2, 2)), "memory": ((0.01, 0.03), (0.0, 0.05), (2, 4)),
                                    "few": ((2.2, 3), (0.0, 0.05), (3.4, 3.6))}.get(
        kind, ((0.06, 0.15), (0.0, 0.05), (1.5, 3)))
    return SimpleNamespace(
        forward_s=forward_s, weight_bytes=weight_bytes, kept_bytes=kept_bytes, start_s=draw.uniform(*start_s), message_s=draw.uniform(*message_s),
        micro_batches=[n for n in range(1, batch + 1) if batch % n == 0],
        memory_bytes=(4 * sum(weights) + sum(kept)) / draw.uniform(*parts), idle=draw.uniform(*((0.75, 0.85) if few else (0.3, 0.5))))


def every_plan(job):
    return [(stages, count, schedule) for stages in job.forward_s for count in job.micro_batches for schedule in ORDERS]


def fits(job, numbers):
    return numbers.memory <= job.memory_bytes and numbers.idle <= job.idle


def alive(schedule, stages, count, rank):
    """How many micro-batches a rank holds at most."""
    return count if schedule == "gpipe" else min(count, stages - rank)


def evaluate(job, stages, count, schedule, alive=alive, fullest=max, message=1, starts=(1, 1)):
    """What a plan needs and costs, simulated: `Numbers` of the memory of its fullest device, its bubble, and its price."""
    forward, backward = ([start * job.start_s + times * seconds / count for seconds in job.forward_s[stages]] for times, start in zip((1, 2), starts))
    whole = _step_s(plain(schedule, stages, count), forward, backward, message * job.message_s)
    memory = fullest([4 * weights + kept * alive(schedule, stages, count, rank) / count
                      for rank, (weights, kept) in enumerate(zip(job.weight_bytes[stages], job.kept_bytes[stages]))])
    return Numbers(memory, 1 - count * (sum(forward) + sum(backward)) / (stages * whole), stages * whole)


def _step_s(orders, forward, backward, message_s):
    """The end of the last event, for orders that can be done: `simulate.pipeline.play` in short, for some hundred plans."""
    ended, times, places, last = {}, [0.0] * len(orders), [0] * len(orders), len(orders) - 1
    while any(place < len(order) for place, order in zip(places, orders)):
        for rank, order in enumerate(orders):
            while places[rank] < len(order):
                kind, m = order[places[rank]]
                outer = rank == (0 if kind == "F" else last)
                came = 0.0 if outer else ended.get((kind, m, rank - 1 if kind == "F" else rank + 1))
                if came is None:
                    break
                start = times[rank] if outer else max(times[rank], came + message_s)
                times[rank] = ended[kind, m, rank] = start + (forward if kind == "F" else backward)[rank]
                places[rank] += 1
    return max(times)

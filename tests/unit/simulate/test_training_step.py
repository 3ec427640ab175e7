"""The simulated step, against one played rank by rank and message by message.

It is also held against what can be said by hand.
"""

import messages
import numpy as np
import pytest

from manyhands.simulate import finish_s, networks, pipeline, ring_s
from manyhands.simulate.fusion import buckets
from manyhands.simulate.training_step import Layer, Machine, Way, step

FREE = Machine(8, (0.0, 1e30), (0.0, 1e30))
SLOW = Machine(1, (0.0, 1e30), (1e-3, 1e6))
BLOCK = Layer(4e4, 0.02, 0.04, 1e3)


def played_pipeline(orders, cost_s, sizes, link):
    """(start, stop) of each rank's events, in its order.

    Each event begins once its rank is free and what it needs has come. `cost_s(kind, stage)`;
    `sizes[stage]`: what a stage hands to the next one, in bytes, and gets a gradient of.
    """
    stop, rows = {}, [[] for _ in orders]
    while any(len(row) < len(order) for row, order in zip(rows, orders, strict=True)):
        for stage, order in enumerate(orders):
            while len(rows[stage]) < len(order):
                kind, m, _ = order[len(rows[stage])]
                ahead = kind == "F"
                needs = (
                    []
                    if stage == (0 if ahead else len(orders) - 1)
                    else [(kind, m, stage - 1 if ahead else stage + 1)]
                )
                if any(needed not in stop for needed in needs):
                    break
                size = sizes[stage - 1] if ahead else sizes[stage]
                start = max(
                    [
                        rows[stage][-1][1] if rows[stage] else 0.0,
                        *[stop[needed] + link[0] + size / link[1] for needed in needs],
                    ]
                )
                stop[kind, m, stage] = start + cost_s(kind, stage)
                rows[stage].append((start, stop[kind, m, stage]))
    return rows


def played(machine, layers, way, slow):
    """One number after the other: each replica's pipeline, then each bucket's ring.

    The rings are played message by message.
    """
    blocks = [
        layers[cut]
        for cut in pipeline.cut(
            [layer.forward_s + layer.backward_s for layer in layers], way.stages
        )
    ]
    schedule = {"gpipe": pipeline.gpipe, "1f1b": pipeline.one_f_one_b}[way.schedule](
        way.stages, way.micro_batches
    )
    cost_s = [
        {
            "F": sum(layer.forward_s for layer in block),
            "B": sum(layer.backward_s for layer in block),
        }
        for block in blocks
    ]
    last = []
    for replica in range(way.data):
        rows = played_pipeline(
            schedule,
            lambda kind, stage, replica=replica: slow[stage][replica][0] * cost_s[stage][kind],
            [block[-1].activation_bytes for block in blocks],
            machine.between,
        )
        last.append([row[-1] for row in rows])
    ends = []
    for stage, block in enumerate(blocks):
        sizes = [layer.weights_bytes for layer in block[::-1]]
        ready = np.cumsum([layer.backward_s for layer in block[::-1]])
        free = [0.0] * way.data
        for bucket in buckets(sizes, way.bucket_bytes):
            start = [
                max(free[r], last[r][stage][0] + slow[stage][r][0] * ready[bucket[-1]])
                for r in range(way.data)
            ]
            programs = (
                messages.ring(way.data, sum(sizes[i] for i in bucket), 2 * (way.data - 1))
                if way.data > 1
                else [[]]
            )
            free = messages.play(programs, start, machine.between)
        ends += [max(free[r], last[r][stage][1]) for r in range(way.data)]
    return max(ends)


def test_as_played_rank_by_rank():
    """200 random small cases: stages, replicas, micro-batches, layers, buckets, late ranks."""
    for seed in range(200):
        draw = np.random.default_rng(seed)
        stages, data, micro_batches = (int(draw.integers(1, high)) for high in (4, 6, 6))
        layers = [
            Layer(*draw.exponential((5e4, 0.02, 0.04, 2e3)))
            for _ in range(stages + int(draw.integers(0, 5)))
        ]
        way = Way(
            data,
            stages,
            1,
            micro_batches,
            0,
            ("gpipe", "1f1b")[seed % 2],
            float(draw.choice([0, 6e4, 1e9])),
        )
        machine = Machine(
            1, (0.0, 1e30), (float(draw.exponential(1e-3)), float(draw.uniform(1e5, 1e7)))
        )
        slow = 1 + draw.exponential(0.3, (stages, data, 1)) * draw.integers(0, 2)
        got = step(machine, layers, way, slow)
        assert got.seconds == pytest.approx(played(machine, layers, way, slow), rel=1e-9), seed
        assert got.computing + got.bubble + got.exposed == pytest.approx(1)


def test_one_rank_only_computes():
    assert step(SLOW, [BLOCK] * 3, Way(1, micro_batches=2)) == pytest.approx(
        (2 * 3 * 0.06, 1, 0, 0)
    )


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_of_equal_stages_is_the_formulas(schedule):
    got = step(FREE, [BLOCK] * 4, Way(1, stages=4, micro_batches=8, schedule=schedule))
    assert got == pytest.approx(((8 + 3) * 0.06, 1 - 3 / 11, pipeline.bubble(4, 8), 0))


def test_overlapped_gradients_are_the_finish_of_unit_05():
    sizes, ready = [4e4] * 5, 0.02 * 5 + 0.04 * np.arange(1, 6)
    for bucket in (0, 9e4, 1e9):
        want = finish_s(ready, sizes, bucket, lambda n: ring_s(6, n, *SLOW.between))
        assert step(SLOW, [BLOCK] * 5, Way(6, bucket_bytes=bucket)).seconds == pytest.approx(want)


def test_a_border_carries_what_leaves_its_last_layer():
    """Three layers on two stages, where 20 kB, 5 kB and 80 kB leave a layer.

    Two of the layers are on the first stage, so 5 kB are sent.
    """
    layers = [Layer(4e4, 0.01, 0.02, activation_bytes) for activation_bytes in (2e4, 5e3, 8e4)]
    layers[2] = layers[2]._replace(forward_s=0.02, backward_s=0.04)
    computed, sent = 2 * 0.03 + 0.06, 2 * (1e-3 + 5e3 / 1e6)  # an activation, and its gradient
    assert step(SLOW, layers, Way(1, stages=2)).seconds == pytest.approx(computed + sent)


def test_one_late_replica_makes_all_late():
    slow = np.ones((1, 64, 1))
    slow[0, 5] = 1.5
    got = step(FREE, [BLOCK], Way(64), slow)
    assert got.seconds == pytest.approx(0.09)
    assert got.computing == pytest.approx((63 + 1.5) / 64 / 1.5)
    assert got.bubble == pytest.approx(0)  # there is no pipeline


def test_a_split_layer_waits_for_two_all_reduces_each_way():
    machine = Machine(4, (1e-3, 1e6), (1.0, 1.0))
    got = step(machine, [BLOCK] * 3, Way(1, split=4, micro_batches=2))
    assert got.seconds == pytest.approx(2 * 3 * (0.06 / 4 + 4 * ring_s(4, 1e3, 1e-3, 1e6)))
    assert got.computing * got.seconds == pytest.approx(2 * 3 * 0.06 / 4)


def test_a_gpt_that_computes_forward_again_all_reduces_six_times_a_block_and_never_the_logits():
    """Counted by bytes, on links without latency: 4 or 6 times the output of a block.

    Of the ends it counts once the embedding's output (twice where it is computed again), and one
    gradient of the last block's output.
    """
    machine = Machine(4, (0.0, 1e3), (1.0, 1.0))
    for recompute in (False, True):
        blocks = networks.layers(
            networks.transformer(10, 8, 5, 10**6), 1, 1e30, itemsize=1, recompute=recompute
        )
        one_s = ring_s(4, 5 * 8, 0.0, 1e3)
        losses_s = (1 + recompute) * 3 * ring_s(4, 5, 0.0, 1e3)
        got = step(machine, blocks, Way(1, split=4)).seconds
        assert got == pytest.approx(
            (10 * (6 if recompute else 4) + 1 + recompute + 1) * one_s + losses_s
        )


def test_zero_sends_the_same_again_or_half_as_much_again():
    """With a network that is all that counts: 2, 2 and 3 times (p - 1)/p of the weights."""
    machine = Machine(1, (0.0, 1e30), (0.0, 1e3))
    layers = [Layer(1e6, 1e-9, 1e-9)] * 40
    plain, one, two, three = (
        step(machine, layers, Way(4, zero=stage, bucket_bytes=0)).seconds for stage in range(4)
    )
    assert plain == pytest.approx(40 * ring_s(4, 1e6, 0, 1e3), rel=1e-6)
    assert [one / plain, two / plain] == pytest.approx([1, 1], rel=1e-6)
    assert three / plain == pytest.approx(1.5, rel=0.01)


def test_the_gathers_of_zero_3_hide_behind_the_computing_but_for_the_first():
    machine = Machine(1, (0.0, 1e30), (0.0, 1e9))
    layers = [Layer(4e6, 0.02, 0.04)] * 10
    gather_s = ring_s(4, 4e6, 0, 1e9) / 2
    got = step(machine, layers, Way(4, zero=3, bucket_bytes=0))
    # two first gathers, the last reduce-scatter
    assert got.seconds == pytest.approx(10 * 0.06 + 2 * gather_s + gather_s)


def test_groups_that_work_at_once_share_the_links_of_a_node():
    machine = Machine(8, (0.0, 1e30), (0.0, 1e6), links_per_node=2)
    layer = [Layer(8e5, 0.0, 1e-9)]
    # two rings, each on one of the two links
    whole = step(machine, layer, Way(16)).seconds
    # eight rings of an eighth, on two links
    eight = step(machine, layer, Way(2, split=8)).seconds
    assert whole == pytest.approx(ring_s(16, 8e5, 0, 2 * 1e6), rel=1e-3)
    assert eight == pytest.approx(ring_s(2, 1e5, 0, 1e6 * 2 / 8), rel=1e-3)


def test_in_two_levels_all_links_of_a_node_are_used():
    layer = [Layer(8e5, 0.0, 1e-9)]
    machine = Machine(8, (0.0, 1e30), (0.0, 1e6), links_per_node=2)
    got = step(machine, layer, Way(32, all_reduce="hierarchical")).seconds
    assert got == pytest.approx(ring_s(4, 8e5, 0, 2e6), rel=1e-3)
    # one rank on a node uses one link
    lonely = Machine(1, (0.0, 1e30), (0.0, 1e6), links_per_node=2)
    alone = step(lonely, layer, Way(4, all_reduce="hierarchical")).seconds
    assert alone == pytest.approx(ring_s(4, 8e5, 0, 1e6), rel=1e-3)


def test_a_border_inside_a_node_takes_the_fast_link():
    layers = [Layer(0, 0.0, 1.0, 1e6)] * 2
    near = Machine(2, (0.0, 1e6), (0.0, 1.0))
    # there and back
    assert step(near, layers, Way(1, stages=2)).seconds == pytest.approx(2 + 2 * 1.0)
    # the next stage is on another node
    with_two_replicas = step(near, layers, Way(2, stages=2)).seconds
    assert with_two_replicas > 1e5


@pytest.mark.parametrize(
    "way, message",
    [
        (Way(0), "data is 0"),
        (Way(1, micro_batches=1.5), "micro_batches is 1.5"),
        (Way(1, stages=3), "2 layers in 3 stages"),
        (Way(1, zero=4), "zero is 4"),
        (Way(1, schedule="zb"), "schedule is 'zb': there are gpipe, 1f1b"),
        (Way(1, all_reduce="star"), "all_reduce is 'star'"),
    ],
)
def test_bad_input_says_what_was_wrong(way, message):
    with pytest.raises(ValueError, match=message):
        step(FREE, [BLOCK] * 2, way)


def test_slowness_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(4,\): it is \[stages, data, split\] = \(1, 4, 1\)"):
        step(FREE, [BLOCK], Way(4), np.ones(4))


def test_a_hundred_thousand_ranks():
    """Monotone in the number of ranks; and it ends."""
    draw = np.random.default_rng(0)
    machine = Machine(8, (5e-6, 150e9), (1e-5, 25e9), links_per_node=8)
    layers = [Layer(2e8, 2e-3, 4e-3, 1e6)] * 16
    seconds = [
        step(machine, layers, Way(data, 4, 8, 16), 1 + 0.02 * draw.random((4, data, 8))).seconds
        for data in (4, 32, 256, 3125)
    ]
    assert seconds == sorted(seconds)

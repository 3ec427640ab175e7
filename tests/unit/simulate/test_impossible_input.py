"""Impossible machines, models and ways.

Each is refused by a sentence that names the field, never by a number.
"""

import math

import pytest

from manyhands import simulate
from manyhands.simulate import machines, networks, pipeline, sharding
from manyhands.simulate.pipeline import Event
from manyhands.simulate.training_step import Layer, Machine, Way, step

MACHINE = Machine(8, (5e-6, 150e9), (1e-5, 12.5e9), 4)
LAYER = Layer(1e6, 1e-3, 2e-3, 1e6)
RESNET = networks.resnet(50)
FORWARD, BACKWARD = Event("F", 0, 0), Event("B", 0, 0)
WRONG = (None, "8", -1, math.nan, [8])  # what can be in the place of any number


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize(
    "field", ["ranks_per_node", "links_per_node", "inside", "between", "inside_shared_by", "torus"]
)
def test_a_machine_that_cannot_be(field, value):
    with pytest.raises(ValueError, match=field):
        step(MACHINE._replace(**{field: value}), [LAYER] * 8, Way(data=16))


@pytest.mark.parametrize("field", ["inside", "between"])
@pytest.mark.parametrize(
    "link", [(1e-5, 0), (1e-5, -1), (-1e-5, 1e9), (math.nan, 1e9), (1e-5,), ("1e-5", 1e9)]
)
def test_a_link_that_cannot_be(field, link):
    with pytest.raises(ValueError, match=field):
        step(MACHINE._replace(**{field: link}), [LAYER] * 8, Way(data=16))


@pytest.mark.parametrize("value", [*WRONG, math.inf, 1.5])
@pytest.mark.parametrize(
    "field",
    [
        "data",
        "stages",
        "split",
        "micro_batches",
        "chunks",
        "servers",
        "zero",
        "schedule",
        "all_reduce",
    ],
)
def test_a_way_that_cannot_be(field, value):
    with pytest.raises(ValueError, match=field):
        step(MACHINE, [LAYER] * 8, Way(data=2)._replace(**{field: value}))


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("field", ["bucket_bytes", "micro_batch_s"])
def test_a_size_or_a_time_of_a_way_that_cannot_be(field, value):
    with pytest.raises(ValueError, match=field):
        step(MACHINE, [LAYER] * 8, Way(data=2)._replace(**{field: value}))


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("field", ["weights_bytes", "forward_s", "backward_s", "activation_bytes"])
def test_a_layer_that_cannot_be(field, value):
    with pytest.raises(ValueError, match=f"{field} of layer 1"):
        step(MACHINE, [LAYER, LAYER._replace(**{field: value})], Way(data=2))


@pytest.mark.parametrize(
    "layers, message",
    [
        ([], "0 layers in 3 stages"),
        ([LAYER] * 2, "2 layers in 3 stages"),
        (None, "layers is None"),
        (RESNET, r"Layer 0 is Block and must be a Layer\(weights_bytes"),
        ([LAYER, 1, LAYER], "Layer 1 is int"),
        ([LAYER._replace(sums=(1, 2))] * 3, "sums of layer 0"),
        ([Layer(0, 0, 0, 0)] * 3, "forward_s and backward_s are 0"),
    ],
)
def test_layers_that_cannot_be(layers, message):
    with pytest.raises(ValueError, match=message):
        step(MACHINE._replace(inside=(0.0, math.inf)), layers, Way(stages=3))


@pytest.mark.parametrize(
    "order, message",
    [
        ([], "no events for rank 0"),
        ([Event("F", 0, 3), Event("B", 0, 3)], "numbered from 0"),
        ([FORWARD], "lacks"),
        ([FORWARD, Event("X", 0, 0)], "kind 'X'"),
        (["F0", "B0"], "An event of rank 0"),
        ([FORWARD, FORWARD, BACKWARD], "twice on stage 0"),
    ],
)
def test_orders_that_cannot_be(order, message):
    with pytest.raises(ValueError, match=message):
        step(MACHINE, [LAYER], Way(schedule=[order]))


@pytest.mark.parametrize("slowness", [-1, math.nan, "slow", [1, 2]])
def test_slowness_that_cannot_be(slowness):
    with pytest.raises(ValueError, match="slowness"):
        step(MACHINE, [LAYER] * 8, Way(data=2), slowness)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: step(None, [LAYER], Way()), "machine is NoneType and must be a Machine"),
        (lambda: step(MACHINE, [LAYER], 8), "way is int and must be a Way"),
        (
            lambda: step(MACHINE, [LAYER], Way(data=10**9)),
            "the number of ranks, is 1,000,000,000: it must be at most",
        ),
        (lambda: networks.layers(RESNET, 0, 1e12), "samples is 0"),
        (lambda: networks.layers(RESNET, "32", 1e12), "samples is '32'"),
        (lambda: networks.layers(RESNET, 32, math.nan), "flops_per_s is nan"),
        (lambda: networks.layers([], 32, 1e12), "blocks is empty"),
        (lambda: networks.layers([LAYER], 32, 1e12), "Block 0 is Layer"),
        (lambda: networks.layers(RESNET, 32, 1e12, itemsize=0), "itemsize is 0"),
        (lambda: networks.layers(RESNET, 32, 1e12, backward=-1), "backward is -1"),
        (lambda: networks.resnet("50"), "depth is '50'"),
        (lambda: networks.transformer(0, 8, 8, 8), "depth is 0"),
        (lambda: networks.transformer(2, 8.5, 8, 8), "width is 8.5"),
        (lambda: networks.transformer(2, 8, -8, 8), "length is -8"),
        (lambda: networks.transformer(2, 8, 8, "50k"), "words is '50k'"),
        (lambda: networks.mfu(RESNET, 32, 0, 1e12), "seconds is 0"),
        (lambda: networks.mfu(RESNET, 32, 1, None), "flops_per_s is None"),
        (lambda: machines.named("dgx-h100", "0.7"), "reached is '0.7'"),
        (lambda: machines.named("dgx-h100", math.nan), "reached is nan"),
        (lambda: pipeline.bubble(0, 4), "stages is 0"),
        (lambda: pipeline.bubble(4, 0), "micro_batches is 0"),
        (lambda: pipeline.gpipe(2.5, 4), "stages is 2.5"),
        (lambda: pipeline.one_f_one_b(-1, 4), "stages is -1"),
        (lambda: pipeline.interleaved(4, 4, 0), "chunks is 0"),
        (lambda: pipeline.cut([1, 2], 3), "2 layers in 3 stages"),
        (lambda: sharding.states_bytes("1", 4, 1), "parameters is '1'"),
        (lambda: sharding.step_bytes(10, 2.5, 1), "ranks is 2.5"),
    ],
)
def test_an_input_that_cannot_be_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: simulate.ring_s("4", 8, 1e-5, 1e9), "p = '4'"),
        (lambda: simulate.ring_s(math.inf, 8, 1e-5, 1e9), "p = inf"),
        (lambda: simulate.tree_s(math.nan, 8, 1e-5, 1e9), "p = nan"),
        (lambda: simulate.tree_s(4, -8, 1e-5, 1e9), "n_bytes is -8"),
        (lambda: simulate.halving_doubling_s(4, "8", 1e-5, 0), "bytes_per_s is 0|n_bytes"),
        (lambda: simulate.ring_s(4, 8, 1e-5, 0), "bytes_per_s is 0"),
        (lambda: simulate.ring_s(4, [8, math.nan], 1e-5, 1e9), "n_bytes is"),
        (lambda: simulate.crossover_bytes(4, 1e-5, -1), "bytes_per_s is -1"),
        (lambda: simulate.hierarchical_s(2, 8, 8, 5, (1e-5, 1e9)), "inside is 5"),
        (lambda: simulate.node_ring_s(2, 8, 8, (1e-5, 1e9), None), "between is None"),
        (
            lambda: simulate.double_tree_s(2, 8, 8, (1e-5, 0), (1e-5, 1e9)),
            "bandwidth of inside is 0",
        ),
        (lambda: simulate.in_network_s(2, 8, 8, (1e-5, 1e9), "fast"), "between is 'fast'"),
        (lambda: simulate.parameter_server_s(1.5, 8, 1e-5, 1e9), "workers is 1.5"),
        (lambda: simulate.parameter_server_s(4, 8, 1e-5, 1e9, 0), "servers is 0"),
        (lambda: simulate.parameter_server_s(4, 8, 1e-5, 1e9, overhead_s=-1), "overhead_s is -1"),
        (lambda: simulate.fit([4, 8], [[], [1e-5]]), "times_s has a size without times"),
        (lambda: simulate.interval([1, 2], 1.5), "level is 1.5"),
        (lambda: simulate.bootstrap([4, 8], [[1e-5], [2e-5]], 0), "resamples is 0"),
        (lambda: simulate.buckets([4], -1), "bucket_bytes is -1"),
        (
            lambda: simulate.finish_s([1, 2], [4], 0, lambda n: 1),
            "ready_s has 2 entries and n_bytes 1",
        ),
    ],
)
def test_an_input_of_a_model_that_cannot_be_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "line, message",
    [
        ("gpus = 80000000000", "`gpus`"),
        ("gpus = 8.0", "`gpus`"),
        ("gpus = true", "`gpus`"),
        ("gpus = 1\nwhat = 5", "`what` is 5"),
        ("gpus = 1\nlinks = 0", "`links`"),
        ("gpus = 1\nbetween = 5", "Cannot overwrite|not TOML"),
        ("gpus = = 1", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_names_the_key(tmp_path, line, message):
    path = tmp_path / "my.toml"
    path.write_text(
        f"{line}\ninside = {{ latency_s = 5e-6, bytes_per_s = 1e11 }}\nbetween = {{ latency_s = "
        "1e-5, bytes_per_s = 3e9 }\n"
    )
    with pytest.raises(ValueError, match=message):
        machines.from_file(path)


def test_free_links_and_noisy_fits_can_still_be_simulated():
    """A link that costs nothing is a useful limit; a fit may give a latency a little below 0."""
    assert (
        step(
            MACHINE._replace(inside=(0.0, math.inf), between=(0, math.inf)), [LAYER], Way(data=16)
        ).exposed
        == 0
    )
    assert simulate.ring_s(4, 4_000_000, -1e-7, 1e9) == pytest.approx(0.006, rel=1e-3)

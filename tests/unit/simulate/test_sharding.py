"""The memory and the traffic of ZeRO's stages.

They are held against the numbers of the paper and against counts by hand.
"""

import pytest

from manyhands.simulate.sharding import shard_size, states_bytes, step_bytes


@pytest.mark.parametrize("stage, gigabytes", [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_figure_of_the_paper(stage, gigabytes):
    """Figure 1 of arXiv 1910.02054: 7.5 billion parameters, 64 ranks, Adam in mixed precision."""
    assert states_bytes(7_500_000_000, 64, stage).total / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_each_stage_shards_one_thing_more():
    parts = [
        tuple(states_bytes(1000, 4, stage, weight=4, gradient=4, optimizer=8)) for stage in range(4)
    ]
    assert parts == [
        (4000, 4000, 8000, 16000),
        (4000, 4000, 2000, 10000),
        (4000, 1000, 2000, 7000),
        (1000, 1000, 2000, 4000),
    ]


def test_sizes_that_do_not_divide_are_padded():
    assert [shard_size(n, 4) for n in (0, 1, 3, 4, 5, 8)] == [0, 1, 1, 1, 2, 2]
    assert states_bytes(5, 4, 3, weight=4, gradient=4, optimizer=8).total == 2 * 16
    assert states_bytes(5, 4, 0, weight=4, gradient=4, optimizer=8).total == 5 * 16


@pytest.mark.parametrize("stage", range(4))
def test_a_world_of_one_keeps_all_and_sends_nothing(stage):
    assert states_bytes(7, 1, stage).total == 7 * 16
    assert step_bytes(7, 1, stage) == 0


def test_stage_3_sends_half_as_much_again():
    psi = 1000 * 4
    sent = [step_bytes(1000, 4, stage, weight=4, gradient=4) / psi for stage in range(4)]
    assert sent == [1.5, 1.5, 1.5, 2.25]


def test_weights_and_gradients_may_differ_in_width():
    assert [step_bytes(8, 4, stage, weight=2, gradient=4) for stage in range(4)] == [48, 36, 36, 48]


@pytest.mark.parametrize("function", [states_bytes, step_bytes])
@pytest.mark.parametrize(
    "arguments, message",
    [
        ((10, 4, 4), "stage is 4: ZeRO has the stages"),
        ((10, 4, "2"), "stage is '2'"),
        ((10, 0, 1), "ranks is 0: it must be a whole number from 1"),
        ((-1, 4, 1), "parameters is -1"),
    ],
)
def test_bad_input_says_what_was_wrong(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_half_a_parameter_is_refused():
    with pytest.raises(ValueError, match="parameters is 7500000000.0: it must be a whole number"):
        states_bytes(7.5e9, 64, 1)

"""The small GPT: each way ends with the weights of one process, and sends what arithmetic says."""

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import gpt_programs  # noqa: E402
from gpt_programs import STEPS  # noqa: E402
from our_processes import our_processes, wait_for_none  # noqa: E402
from ranks import script  # noqa: E402

from manyhands.gpt import CONTEXT, ROWS, SYMBOLS, batches, ways  # noqa: E402
from manyhands.gpt.transformer import BLOCKS, WIDTH  # noqa: E402

# numbers of weights: of a block those that are cut over "tensor" and those that are not; before and
# behind the blocks
CUT, UNCUT = 12 * WIDTH * WIDTH + 7 * WIDTH, 6 * WIDTH
FIRST, LAST = (SYMBOLS + CONTEXT) * WIDTH, 2 * WIDTH + WIDTH * SYMBOLS
ALL = 8 * (BLOCKS * (CUT + UNCUT) + FIRST + LAST)  # bytes
ACTIVATION = 8 * ROWS * CONTEXT * WIDTH  # what goes from block to block, for the whole batch
ALL_REDUCES = 4  # of a block's activation over "tensor": g twice forward, f twice backward
# way -> bytes that each rank sends in a step. An all-reduce of S bytes over p ranks is 2 (p - 1) /
# p S on each, a gather or a reduce-scatter half of that. FSDP2 gathers a block twice, and what is
# around the blocks once.
SENT = {
    "one process": [0, 0, 0, 0],
    "DDP": [3 / 2 * ALL] * 4,
    "FSDP2": [8 * (9 / 4 * BLOCKS * (CUT + UNCUT) + 3 / 2 * (FIRST + LAST))] * 4,
    "tensor, by hand": [3 / 2 * ALL_REDUCES * BLOCKS * ACTIVATION] * 4,
    "tensor, DTensor": [3 / 2 * ALL_REDUCES * BLOCKS * ACTIVATION] * 4,
    "pipeline": [ACTIVATION, 2 * ACTIVATION, 2 * ACTIVATION, ACTIVATION],
    "FSDP2 x tensor": [
        8 * (3 / 2 * BLOCKS * (CUT / 2 + UNCUT) + FIRST + LAST)
        + ALL_REDUCES * BLOCKS * ACTIVATION / 2
    ]
    * 4,
    "data x pipeline": [
        8 * (BLOCKS / 2 * (CUT + UNCUT) + ends) + ACTIVATION / 2 for ends in (FIRST, LAST)
    ]
    * 2,
    # one row of ranks: 1 x 2 x 2
    "data x pipeline x tensor": [ALL_REDUCES * BLOCKS / 2 * ACTIVATION + ACTIVATION] * 4,
}
# 2 x 2 x 2 ranks: activations of half of the rows in half of the blocks; half of a border; the
# gradients of half of the blocks
EIGHT = [
    ALL_REDUCES * BLOCKS / 2 * ACTIVATION / 2
    + ACTIVATION / 2
    + 8 * (BLOCKS / 2 * (CUT / 2 + UNCUT) + ends)
    for ends in (FIRST, FIRST, LAST, LAST)
] * 2


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    """call(world): for each of so many ranks {way: what it found}."""
    before, folder = our_processes(), tmp_path_factory.mktemp("ways")
    status, _, errors = script([sys.executable, gpt_programs.__file__, str(folder)], limit_s=600)
    assert status == 0, errors
    assert not wait_for_none(before, 10)
    return lambda world: [
        json.loads((folder / f"{world}-{rank}").read_text()) for rank in range(world)
    ]


@pytest.fixture(scope="module")
def results(results_of):
    return results_of(4)


@pytest.mark.parametrize("way", ways.WAYS)
def test_each_way_ends_with_the_weights_of_one_process(results, way):
    for of_rank in results:
        assert of_rank[way]["distance"] < ways.tolerance(STEPS)
        assert of_rank[way]["loss"] < 1e-13  # of losses of 5: a few dozen roundings
        assert of_rank[way]["peak"] > 0 and of_rank[way]["steps"] == STEPS


@pytest.mark.parametrize("way", SENT)
def test_each_rank_sends_what_arithmetic_says(results, way):
    assert [of_rank[way]["sent"] for of_rank in results] == SENT[way]


def test_the_owners_of_zero_1_broadcast_what_they_have_stepped(results):
    """The optimizer decides which rank owns what.

    All together send 3/2 of the weights each, and each weight to three ranks.
    """
    assert sum(of_rank["ZeRO-1"]["sent"] for of_rank in results) == 4 * 3 / 2 * ALL + 3 * ALL


def test_the_page_has_all_ways_and_these_bytes(results):
    page = (
        (Path(__file__).parents[2] / "docs" / "SYSTEMS.md")
        .read_text(encoding="utf-8")
        .partition("### One network for all\n")[2]
    )
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert [way for way, *_ in rows] == ["way", *ways.WAYS]
    right = {
        **SENT,
        "data x pipeline x tensor": EIGHT,
        "ZeRO-1": [of_rank["ZeRO-1"]["sent"] for of_rank in results],
    }
    for way, *_, sent, _ in rows[1:]:
        ends = sorted({min(right[way]), max(right[way])})
        assert sent == " to ".join(f"{int(number):,}" for number in ends), way


def test_three_axes_on_eight_ranks(results_of):
    results = [of_rank["data x pipeline x tensor"] for of_rank in results_of(8)]
    assert max(of_rank["distance"] for of_rank in results) < ways.tolerance(STEPS)
    assert [of_rank["sent"] for of_rank in results] == EIGHT


def test_the_tolerance_is_above_another_order_and_far_below_another_gradient(monkeypatch):
    reference = ways.train("one process", STEPS).weights

    def apart(change):
        monkeypatch.setattr(
            ways, "batches", lambda step, rows: [change(part) for part in batches(step, rows)]
        )
        return ways.distance(ways.train("one process", STEPS).weights, reference)

    assert 0 < apart(lambda part: part.flip(0)) < ways.tolerance(STEPS)
    assert apart(lambda part: part[:-1]) > 1e6 * ways.tolerance(STEPS)


@pytest.mark.parametrize(
    ("way", "world", "rows", "words"),
    [
        ("DP", 4, 8, "no way 'DP': choose one of one process, DDP"),
        ("DDP", 3, 8, "'DDP' on 3 ranks: 8 rows do not divide into 3"),
        ("FSDP2", 4, 6, "6 rows do not divide into 4"),
        ("tensor, by hand", 3, 8, "4 heads do not divide into 3"),
        ("tensor, DTensor", 8, 8, "4 heads do not divide into 8"),
        ("pipeline", 4, 6, "6 rows do not divide into 4"),
        ("pipeline", 5, 8, "4 blocks do not divide into 5"),
        ("data x pipeline", 4, 4, "4 rows do not divide into 8"),
        ("FSDP2 x tensor", 3, 8, "a multiple of 2 ranks, and there are 3"),
        ("data x pipeline x tensor", 6, 8, "a multiple of 4 ranks, and there are 6"),
    ],
)
def test_a_world_that_does_not_fit_is_told(monkeypatch, way, world, rows, words):
    monkeypatch.setattr(ways.dist, "is_initialized", lambda: True)
    monkeypatch.setattr(ways.dist, "get_world_size", lambda: world)
    with pytest.raises(ValueError, match=words):
        ways.train(way, 1, rows)


def test_no_step_is_told():
    with pytest.raises(ValueError, match="steps is 0"):
        ways.train("one process", 0)


def test_without_ranks_only_one_process():
    with pytest.raises(ValueError, match="'DDP' needs ranks: call dist.init_process_group"):
        ways.train("DDP", 1)


def test_weights_by_other_names():
    with pytest.raises(KeyError, match="only one of the two has .*'a'"):
        ways.distance({"a": torch.ones(1)}, {})

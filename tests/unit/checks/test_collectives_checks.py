"""Unit 04's checks: each mistake has a look that no other one has.

Messages are judged as the ledger sees them, and the picture holds its numbers.
"""

import pytest

from manyhands.checks.collectives import diagnosis
from manyhands.checks.collectives.messages import CRITERIA, HINTS, MISTAKES
from manyhands.plots.collectives import busiest, busiest_table

torch = pytest.importorskip("torch")

from manyhands.checks.collectives import ranks  # noqa: E402

WORLDS = [5, 3, 2]


def given(p, number=0, seed=3):
    dtype, shape = ranks.shapes(seed, p)[number]
    return dtype, ranks.everyones(seed, p, dtype, shape)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("p", WORLDS)
def test_shapes_are_uneven_too_small_and_even(p):
    numels = [torch.Size(shape).numel() for _, shape in ranks.shapes(11, p)]
    assert numels[0] % p and numels[2] % p and numels[1] < p and numels[3] % p == 0
    assert {dtype for dtype, _ in ranks.shapes(11, p)} == set(ranks.DTYPES)


def test_small_groups_do_not_count_as_the_world_does():
    for seed in range(50):
        world, three, two = ranks.members_of(seed)
        assert world == (0, 1, 2, 3, 4) and three != (0, 1, 2) and two != (0, 1)
    assert ranks.members_of(4711) != ranks.members_of(1234)


def test_whole_numbers_have_one_sum_in_any_order():
    for number in range(4):
        dtype, parts = given(5, number)
        total = sum(parts)
        assert torch.equal(total, sum(parts[::-1])) and total.dtype == ranks.DTYPES[dtype][0]
        assert ranks.sample(total) == ranks.sample(sum(parts[::-1]))


SUMS = {
    "unchanged": lambda parts, me: parts[me],
    "mean": lambda parts, me: (sum(parts) / len(parts)).to(parts[0].dtype),
    "twice": lambda parts, me: sum(parts) + parts[me],
    "without its own": lambda parts, me: sum(parts) - parts[me],
    "times p": lambda parts, me: len(parts) * sum(parts),
}


@pytest.mark.parametrize("looks", SUMS)
@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_wrong_sum_is_named(looks, number):
    dtype, parts = given(5, number)
    answer = ranks.compare(SUMS[looks](parts, 2), sum(parts), ranks._wrong_sums(parts, 2))
    assert not answer["right"] and answer["looks"] == looks
    case = {**ranks.case_of((0, 1, 2, 3, 4), 2, dtype, parts[0].numel()), **answer}
    assert diagnosis.value_problem(case, "all-reduce")["mistake"] == MISTAKES[
        "all-reduce", looks
    ].format(p=5)


@pytest.mark.parametrize("p", WORLDS)
def test_what_is_only_partly_right_is_named(p):
    _, parts = given(p)
    right, n = sum(parts), parts[0].numel()
    rest, half = right.clone(), parts[1].clone()
    rest[n - n % p :] = parts[1][n - n % p :]
    half.tensor_split(p)[1].copy_(right.tensor_split(p)[1])
    assert ranks._partly(rest, right, p) == "rest" and ranks._partly(half, right, p) == "one chunk"


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_rounding_to_float32_is_seen(dtype):
    parts = ranks.everyones(1, 5, dtype, (40,))
    rounded = sum(part.float() for part in parts).to(parts[0].dtype)
    assert ranks.compare(rounded, sum(parts), ranks._wrong_sums(parts, 0))["looks"] == "rounded"


@pytest.mark.parametrize("p", WORLDS)
def test_a_wrong_reduce_scatter_is_named(p):
    _, parts = given(p)
    cut = [list(part.tensor_split(p)) for part in parts]
    totals, me = [sum(part[j] for part in cut) for j in range(p)], p - 1
    own = [chunk.clone() for chunk in cut[me]]

    def looks(values, listed=()):
        answer = ranks._reduced(values, parts, me, listed)
        assert not answer["right"]
        return answer["looks"]

    assert looks(own) == "own"
    assert looks([*own[:me], totals[me] + own[me]]) == "twice"
    assert looks([totals[0], *own[1:]]) == "elsewhere"
    assert looks(own, totals) == "only in the list"
    if p > 2:
        assert looks([*own[:me], cut[me][me] + cut[me - 1][me]]) == "2 of them"
        assert looks([*own[:me], cut[me][me] + cut[0][me]]) == "2 of them, before"
    assert ranks._reduced(totals, parts, me, totals)["right"]


@pytest.mark.parametrize("p", WORLDS)
def test_a_wrong_all_gather_is_named(p):
    _, parts = given(p)
    wanted = [parts[r].tensor_split(p)[r].clone() for r in range(p)]
    start = list(ranks._own_chunk_only(parts, 0).tensor_split(p))
    assert ranks.same(start[0], wanted[0])
    assert ranks._gathered(wanted, parts, 0, wanted)["right"]
    answer = ranks._gathered(start, parts, 0, start)
    assert (answer["looks"], answer["bad"]) == ("never filled", 1)
    assert ranks._gathered(start, parts, 0, wanted)["looks"] == "only in the list"
    case = {**ranks.case_of(tuple(range(p)), 0, "float32", parts[0].numel()), **answer}
    assert (
        "Chunk 1 was never filled on rank 0"
        in diagnosis.value_problem(case, "all-gather")["mistake"]
    )


def test_a_number_in_a_look_goes_into_the_text():
    case = {
        **ranks.case_of((1, 2, 4), 2, "int64", 7),
        "right": False,
        "wanted": [],
        "sample": [],
        "looks": "of rank 1",
        "root": 0,
    }
    problem = diagnosis.value_problem(case, "broadcast")
    assert (
        problem["rank"] == 4
        and "the numbers of rank 1 of the group, although the root is 0" in problem["mistake"]
    )
    assert (
        "Only 2 of 3 ranks"
        in diagnosis.value_problem({**case, "looks": "2 of them"}, "reduce-scatter")["mistake"]
    )


# ------------------------------------------------------------------ messages


def seen(p, messages, sent, numel=60, peers=None, rounds=0, library=()):
    """A call as the ledger sees it; one number stands for all ranks."""

    def everyone(value):
        return list(value) if isinstance(value, (list, tuple)) else [value] * p

    return diagnosis.Traffic(
        p,
        numel,
        4,
        None,
        list(range(p)),
        everyone(messages),
        everyone(sent),
        peers or [[(i + 1) % p] for i in range(p)],
        rounds,
        list(library),
    )


def says(problem, text):
    return text in problem["mistake"] if text else problem is None


@pytest.mark.parametrize("p", [5, 3])
@pytest.mark.parametrize(
    "factor, text",
    [
        (lambda p: [2 * 240 * (p - 1) // p] * p, None),
        (lambda p: [240 * (p - 1)] * p, "gathers everything"),
        (lambda p: [240 * (p - 1)] + [240] * (p - 1), "through one place"),
        (lambda p: [0] * p, "fewer bytes"),
        (lambda p: [9999 * p] * p, "more bytes"),
    ],
)
def test_bytes_of_an_all_reduce(p, factor, text):
    call = seen(p, 2 * (p - 1), factor(p))
    assert says(diagnosis.bytes_problem(call, 2), text)
    right = diagnosis.bytes_evidence(seen(p, 2 * (p - 1), 2 * 240 * (p - 1) // p), 2)
    assert (diagnosis.bytes_evidence(call, 2) == right) is (text is None)


@pytest.mark.parametrize(
    "messages, peers, library, text",
    [
        (8, None, [], None),
        (4, None, [], "fewer messages than rounds"),
        (9, None, [], "more messages than rounds"),
        (8, [[1, 2]] * 5, [], "only to the next rank"),
        (8, None, ["allreduce"], "The allreduce of torch.distributed"),
    ],
)
def test_messages_of_a_ring(messages, peers, library, text):
    call = seen(5, messages, 384, peers=peers, library=library)
    assert says(diagnosis.ring_problem(call, 2), text)
    assert (diagnosis.ring_evidence(call, 2) == diagnosis.ring_evidence(seen(5, 8, 384), 2)) is (
        text is None
    )


def test_empty_chunks_need_not_be_sent():
    call = seen(5, [6, 8, 8, 8, 6], 12, numel=4, peers=[[1], [2], [3], [4], []])
    assert diagnosis.ring_problem(call, 2) is None
    assert diagnosis.ring_evidence(call, 2) == diagnosis.ring_evidence(seen(5, 8, 12, numel=4), 2)


def test_a_last_chunk_that_is_filled_up_or_takes_the_rest_is_a_ring_too():
    for p, numel in ((5, 4), (5, 63), (3, 31), (2, 1)):
        whole = -(-numel // p) * p
        assert (
            diagnosis.bytes_problem(seen(p, 0, 2 * (p - 1) * whole // p * 4, numel=numel), 2)
            is None
        )
        sizes = [numel // p] * (p - 1) + [numel - (p - 1) * (numel // p)]
        sent = [2 * 4 * (numel - size) for size in sizes]
        assert diagnosis.bytes_problem(seen(p, 0, sent, numel=numel), 2) is None


@pytest.mark.parametrize(
    "messages, rounds, text",
    [
        ([3, 1, 0, 0, 0], 3, None),
        ([2, 1, 1, 0, 0], 2, None),
        ([4, 0, 0, 0, 0], 4, "helps to send"),
        ([1, 1, 1, 1, 0], 4, "handed on"),
    ],
)
def test_a_tree_is_told_from_a_star_and_a_chain(messages, rounds, text):
    call = seen(5, messages, [240 * count for count in messages], rounds=rounds)
    assert says(diagnosis.tree_problem(call), text) and diagnosis.once_problem(call) is None
    assert (
        diagnosis.tree_evidence(call)
        == diagnosis.tree_evidence(seen(5, [3, 1, 0, 0, 0], [720, 240, 0, 0, 0], rounds=3))
    ) is (text is None)


def test_who_sends_nothing_has_no_tree():
    assert says(diagnosis.tree_problem(seen(5, 0, 0)), "Has every rank got x?")
    assert diagnosis.tree_evidence(seen(5, 0, 0)) != diagnosis.tree_evidence(
        seen(5, [3, 1, 0, 0, 0], [720, 240, 0, 0, 0], rounds=3)
    )


def test_everyone_gets_x_once():
    assert says(diagnosis.once_problem(seen(3, [2, 1, 0], [480, 240, 0])), "need not get it again")
    assert says(diagnosis.once_problem(seen(3, [1, 0, 0], [240, 0, 0])), "Has every rank got x?")
    assert says(diagnosis.once_problem(seen(3, [1, 1, 0], [240, 120, 0])), "whole tensor")


# ------------------------------------------------------------------ cost


@pytest.mark.parametrize(
    "what, way, got, text",
    [
        ("bytes", "ring", 384, None),
        ("bytes", "ring", 2 * 4 / 5 * 240, None),
        ("bytes", "ring", 480, "does not send all its chunks"),
        ("bytes", "ring", 192, "one half only"),
        ("bytes", "ring", 1920, "all ranks send together"),
        ("bytes", "star", 1200, "does not send to itself"),
        ("bytes", "tree", 480, "rounded up"),
        ("bytes", "tree", 240, "in each round of the broadcast"),
        ("bytes", "tree", 1440, "twice what the busiest rank sends"),
        ("bytes", "gather", "many", "different number"),
        ("rounds", "ring", 8, None),
        ("rounds", "ring", 4, "two halves"),
        ("rounds", "broadcast", 2, "rounded up"),
        ("rounds", "broadcast", 2.32, "whole numbers"),
        ("rounds", "broadcast", 4, "of a chain"),
        ("rounds", "broadcast", None, "different number"),
        ("rounds", "ring", float("nan"), "whole numbers"),
    ],
)
def test_a_wrong_prediction_is_named(what, way, got, text):
    assert says(diagnosis.predicted_problem(what, way, 5, 240, got), text)


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())


# ------------------------------------------------------------------ the picture


def test_the_picture_has_marks_lines_and_a_table():
    measured, formulas = (
        {"ring": {2: 1.0, 5: 1.6}, "star": {2: 1.0, 5: 4.0}},
        {"ring": lambda p: 2 * (p - 1) / p, "star": lambda p: p - 1},
    )
    text = busiest(measured, formulas).text
    assert text == busiest(measured, formulas).text
    assert all(word in text for word in ("ring", "star", "ranks", "in tensors"))
    assert (
        "Knoten"
        in busiest(measured, formulas, words={"x": "Knoten", "y": "Bytes", "formula": ""}).text
    )
    lines = busiest_table(measured, formulas, more=(1000,)).splitlines()
    assert lines[2].split() == ["5", "1.600", "/", "1.600", "4.000", "/", "4.000"] and lines[
        3
    ].split() == ["1000", "1.998", "999.000"]

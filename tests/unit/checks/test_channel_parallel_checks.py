"""Unit 13's checks.

The right values are those of PyTorch's own layers, each mistake looks different, and bytes are
judged.
"""

import pytest

from manyhands.checks.channel_parallel import diagnosis
from manyhands.checks.channel_parallel.messages import CRITERIA, HINTS, MISTAKES

torch = pytest.importorskip("torch")

from manyhands.checks.channel_parallel import case_ranks as cases  # noqa: E402
from manyhands.checks.channel_parallel import ranks  # noqa: E402


@pytest.mark.parametrize("split", ["out", "in"])
@pytest.mark.parametrize("size, number", [(4, 0), (4, 1), (3, 0), (2, 1)])
def test_the_pieces_make_the_whole(split, size, number):
    case = cases.Case(5, split, size, number)
    pieces = [case.pieces(rank) for rank in range(size)]
    assert case.c_in % size and case.c_out % size  # uneven
    if split == "out":
        whole = torch.cat([case.of(*piece) for piece in pieces], 1)
    else:
        whole = sum(case.of(x, weight, None) for x, weight, _ in pieces) + case.shown_bias()
    assert cases.same(whole.detach(), case.y)
    layer = torch.nn.Conv2d(
        case.c_in, case.c_out, 3, case.stride, case.padding, bias=case.bias is not None
    ).double()
    layer.load_state_dict(
        {"weight": case.weight} | ({} if case.bias is None else {"bias": case.bias})
    )
    assert cases.same(layer(case.x).detach(), case.y)


@pytest.mark.parametrize("size", [4, 3, 2])
def test_serial_gradients_are_those_of_finite_differences(size):
    case = cases.Case(3, "in", size, 0)
    _, weight, bias = case.serial(1)
    step, column = 1e-6, case.columns(1).start
    moved = case.weight.clone()
    moved[2, column, 1, 0] += step
    slope = ((case.of(case.x, moved, case.bias) - case.y) * case.slope).sum() / step
    assert slope.item() == pytest.approx(weight[2, 0, 1, 0].item(), rel=1e-5)
    assert cases.same(bias, case.slope.sum((0, 2, 3)))


@pytest.mark.parametrize("split", ["out", "in"])
@pytest.mark.parametrize("size, number", [(4, 0), (4, 1), (3, 1), (2, 0)])
def test_no_mistake_looks_like_the_right_output_or_like_another_mistake(split, size, number):
    case = cases.Case(7, split, size, number)
    for rank in range(size):
        seen = {
            name: value for name, value in cases.lookalikes(case, rank).items() if value is not None
        }
        for name, value in seen.items():
            compared = cases.compare("output", value, case.y, seen)
            if rank == 0 and name == "own first":  # rank 0's own channels do come first
                continue
            assert not compared["right"], name
            assert compared["looks"] == name or cases.same(value, seen[compared["looks"]]), name
            assert (split, name) in MISTAKES, name


def test_a_grouped_layer_is_torchs_grouped_convolution():
    case = cases.Case(1, "out", 2, 0)
    case.c_in, case.c_out, case.bias = 4, 6, None  # numbers that two groups can share
    case.x, case.weight = torch.randn(2, 4, 6, 8).double(), torch.randn(6, 4, 3, 3).double()
    blocks = torch.cat([case.weight[:3, :2], case.weight[3:, 2:]])
    assert cases.same(
        case.grouped(),
        torch.nn.functional.conv2d(case.x, blocks, None, case.stride, case.padding, groups=2),
    )


def test_gradients_that_are_too_large_or_partial_are_named():
    case = cases.Case(2, "out", 4, 0)
    right, wrong = case.serial(2), cases.wrong_gradients(case, 2)
    partial = case.pieces(2)
    case.of(*partial).backward(case.slope[:, case.rows(2)])
    assert cases.compare("x", partial[0].grad, right[0], wrong[0])["looks"] == "partial"
    assert cases.compare("x", partial[0].grad * 4, right[0], wrong[0])["looks"] == "partial, times"
    assert cases.compare("weight", right[1] * 4, right[1], wrong[1])["looks"] == "times"
    assert cases.compare("weight", None, right[1], wrong[1])["looks"] == "nothing"
    assert cases.compare("weight", right[1], right[1], wrong[1])["right"]
    for topic in (
        "out x",
        "out weight",
        "out bias",
        "in x",
        "in weight",
        "in bias",
        "pair x",
        "pair first weight",
        "pair second bias",
    ):
        problem = diagnosis.value_problem(
            3,
            {"name": "it", "right": False, "looks": "times", "wanted": [], "sample": []},
            topic,
            size=4,
        )
        assert "too large by a factor of 4" in problem["mistake"]


def test_a_sample_tells_an_order_from_another():
    a = torch.arange(24.0).view(2, 3, 4)
    assert (
        cases.sample(a) != cases.sample(a.flip(1))
        and cases.sample(a)[3] == cases.sample(a.flip(1))[3]
    )


CUTS = {
    "dealt": lambda t, rank, size: t[rank::size],
    "even": lambda t, rank, size: t[rank * (len(t) // size) : (rank + 1) * (len(t) // size)],
    "whole": lambda t, rank, size: t,
}


@pytest.mark.parametrize("looks", CUTS)
def test_a_wrong_cut_is_named(looks):
    conv = torch.nn.Conv2d(5, 10, 3)
    answer = [
        torch.nn.Parameter(CUTS[looks](tensor.detach(), 1, 4).clone())
        for tensor in (conv.weight, conv.bias)
    ]
    case = {"split": "out", "rank": 1, "size": 4, **ranks._cut(answer, conv, "out", 1, 4)}
    assert case["results"][0]["looks"] == looks
    assert diagnosis.part_problem(case)["mistake"] == MISTAKES["part out weight", looks]


def test_what_a_part_keeps_in_memory():
    conv = torch.nn.Conv2d(5, 10, 3)
    whole = [parameter.untyped_storage().data_ptr() for parameter in conv.parameters()]
    own = conv.weight[:2].detach().clone()
    pieces = {
        "a view": torch.nn.Parameter(conv.weight[:2].detach()),
        "shared": conv.bias,
        "not a leaf": conv.weight[:2].clone(),
        "no parameter": own.clone().requires_grad_(),
        None: torch.nn.Parameter(own),
    }
    for mistake, tensor in pieces.items():
        problem = diagnosis.held_problem({"rank": 1, "held": [ranks._held(tensor, whole)]})
        assert (problem and problem["mistake"]) == (mistake and MISTAKES[mistake])
    assert ranks._held(pieces["a view"], whole)[3] == 8 * 5 * 9 * 4


@pytest.mark.parametrize(
    "topic, size, right, wrong",
    [
        # a join by a sum of padded tensors
        ("out", 4, ((3 * 100 * 8, 12), (6 * 70 * 8, 24)), ((6 * 100 * 8, 24), (6 * 70 * 8, 24))),
        # x's gradient never summed
        ("out", 3, ((2 * 100 * 8, 6), (4 * 70 * 8, 4)), ((2 * 100 * 8, 6), (0, 0))),
        # y's gradient gathered too
        (
            "out",
            3,
            ((2 * 100 * 8, 6), (4 * 70 * 8, 4)),
            ((2 * 100 * 8, 6), (4 * 70 * 8 + 2 * 100 * 8, 10)),
        ),
        # sizes, in 60 bytes
        (
            "out",
            4,
            ((3 * 100 * 8, 12), (6 * 70 * 8, 24)),
            ((3 * 100 * 8 + 60, 24), (6 * 70 * 8, 24)),
        ),
        # sizes, as shapes of empty tensors
        ("out", 4, ((3 * 100 * 8, 12), (6 * 70 * 8, 24)), ((3 * 100 * 8, 24), (6 * 70 * 8, 24))),
        ("in", 4, ((6 * 100 * 8, 6), (0, 0)), ((12 * 100 * 8, 12), (0, 0))),
    ],
)  # a sum by gathering
def test_bytes(topic, size, right, wrong):
    case = {"numel": {"x": 70, "y": 100}, "size": size}
    limits = diagnosis.layer_limits(case, topic)
    problems = [
        [
            diagnosis.bytes_problem(total, limit, topic, direction)
            for total, limit, direction in zip(totals, limits, ("forward", "backward"), strict=True)
        ]
        for totals in (right, wrong)
    ]
    assert problems[0] == [None, None] and any(problems[1])
    assert [
        diagnosis.evidence(total, limit) for total, limit in zip(right, limits, strict=True)
    ] == [list(limit) for limit in limits]
    assert [
        diagnosis.evidence(total, limit) for total, limit in zip(wrong, limits, strict=True)
    ] != [list(limit) for limit in limits]


@pytest.mark.parametrize(
    "factor, says",
    [
        (1 / 4, "what one of the 4 ranks sends"),
        (2, "sends its whole tensor to each of the others"),
        (4 / 3, "also sends to itself"),
    ],
)
def test_a_wrong_prediction_is_named(factor, says):
    sent = 2 * 3 * 4 * 1000
    case = {
        "predicted": sent * factor,
        "size": 4,
        "way": "in",
        "x": [10, 3],
        "y": [10, 100],
        "weight": [5, 3],
    }
    assert says.lower() in diagnosis.moved_problem(case, sent)["mistake"].lower()
    assert diagnosis.moved_problem({**case, "predicted": sent}, sent) is None


@pytest.mark.parametrize(
    "batch, c_in, c_out, kernel", [(4, 19, 33, 3), (5, 30, 50, 5), (3, 17, 40, 3)]
)
def test_the_largest_side_moves_no_more_and_the_next_one_does(batch, c_in, c_out, kernel):
    side = diagnosis.largest_side(batch, c_in, kernel)
    assert batch * c_out * side**2 <= c_out * c_in * kernel**2 < batch * c_out * (side + 1) ** 2
    assert diagnosis.side_problem({"asked": [batch, c_in, c_out, kernel], "got": side}) is None
    for wrong, says in (
        (side + 1, "round down"),
        (side + 0.5, "whole number"),
        ("many", "Compare the numbers"),
    ):
        assert (
            says
            in diagnosis.side_problem({"asked": [batch, c_in, c_out, kernel], "got": wrong})[
                "mistake"
            ]
        )


def test_the_tutorials_formula_is_named_where_it_gives_all_sides():
    asked = [(4, 19, 33, 3), (2, 30, 33, 5), (3, 17, 40, 3)]
    sides = [{"asked": layer, "got": int(diagnosis.tutorials_side(*layer))} for layer in asked]
    assert all(
        "tutorial's lines" in problem["mistake"]
        for problem in diagnosis.side_problems(sides)
        if problem
    ) and any(diagnosis.side_problems(sides))
    less = [
        {"asked": layer, "got": diagnosis.largest_side(layer[0], layer[1], layer[3]) - 1}
        for layer in asked
    ]
    assert all(
        "a side that is larger by one" in problem["mistake"]
        for problem in diagnosis.side_problems(less)
    )
    right = [
        {"asked": layer, "got": diagnosis.largest_side(layer[0], layer[1], layer[3])}
        for layer in asked
    ]
    assert diagnosis.side_problems(right) == [None] * 3


def test_what_is_shown_begins_at_the_first_wrong_number():
    right, got = torch.arange(8.0).double().view(2, 4), torch.arange(8.0).double().view(2, 4)
    got[1, 1] += 1e-7
    shown = diagnosis.shown(cases.compare("y", got, right))
    assert shown == {
        "expected": "from [1, 1] on: 5, 6, 7",
        "got": "from [1, 1] on: 5.0000001, 6, 7",
    }
    assert (
        diagnosis.shown(cases.compare("y", right, right))
        == {}
        == diagnosis.shown(cases.compare("y", None, right))
    )
    assert diagnosis.shown(cases.compare("y", right[0], right)) == {"expected": [2, 4], "got": [4]}


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())

"""Unit 16's checks: what is asked for is what it claims to be, and counting what is alive.

Whole answers are tried by the mutants.
"""

import functools

import pytest
import torch
from torch import nn

from manyhands.checks.sharded_states import cases, diagnosis
from manyhands.checks.sharded_states.held_with_torch import held_bytes
from manyhands.checks.sharded_states.messages import CRITERIA, HINTS, MISTAKES
from manyhands.simulate import sharding

SEEDS = (0, 7, 4711)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_is_the_packages_table_layer_by_layer(seed):
    for layers, ranks, stage, *kind in [
        case for asked in cases.models(seed).values() for case in asked
    ]:
        table = sum(sharding.states_bytes(size, ranks, stage, *kind).total for size in layers)
        assert cases.parts(layers, ranks, stage, *kind).kept == table


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_of_one_layer_is_no_answer(seed):
    """All layers as one are right nowhere in the second criterion.

    They are computed by the package's function, and not right everywhere in the first criterion.
    """
    asked = cases.models(seed)
    for layers, ranks, stage, *kind in asked["work"]:
        assert (
            sharding.states_bytes(sum(layers), ranks, stage, *kind).total
            != cases.parts(layers, ranks, stage, *kind).right
        )
    assert any(
        sharding.states_bytes(sum(layers), ranks, stage, *kind).total
        != cases.parts(layers, ranks, stage, *kind).right
        for layers, ranks, stage, *kind in asked["kept"]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_as_many_layers_as_fit_one_by_one(seed):
    asked, answers = cases.devices(seed), []
    for size, device_bytes, *rest in asked:
        count = 0
        while cases.parts([size] * (count + 1), *rest).right <= device_bytes:
            count += 1
        assert count == cases.most(size, device_bytes, *rest)
        answers.append(count)
    assert answers[-1] == 0 and all(
        full == short + 1 for full, short in zip(answers[:-1:2], answers[1:-1:2], strict=True)
    )


def test_no_answer_and_parts_of_layers_are_told():
    case = ([10, 3], 4, 3, 2, 2, 12)
    assert cases.parts(*case).right == (3 + 1) * 16 + 12 * 4
    right, nothing = diagnosis.memory_problems([case, case], [(3 + 1) * 16 + 12 * 4, float("nan")])
    assert right is None and nothing["expected"] == 112
    assert (
        nothing["mistake"]
        == "layers = [10, 3], ranks = 4, stage = 3, weight = 2, gradient = 2, states = 12: "
        + MISTAKES["no number"]
    )
    device = (10, 1000, 4, 3, 2, 2, 4)
    for got, key in (
        (float("nan"), "no number"),
        (2.5, "not whole"),
        (cases.most(*device) + 1, "one too many"),
        (cases.most(*device) - 1, "one too few"),
        (3, "most other"),
    ):
        (problem,) = diagnosis.most_problems([device], [got])
        assert problem["mistake"].startswith(
            "size = 10, device_bytes = 1000, ranks = 4, "
        ) and problem["mistake"].endswith(": " + MISTAKES[key])


def test_where_two_mistakes_come_to_one_number_that_of_most_answers_is_told():
    """Of 567 parameters in one vector, 81 are on a rank.

    There are 7 ranks, and 7 times 38 numbers of the largest layer, next to 260 numbers of it.
    """
    both, other = ([199, 4, 260, 104], 7, 2, 4, 4, 8), ([10, 3], 4, 3, 2, 2, 12)
    wrong = [cases.parts(*case).wrong["work without padding"] for case in (both, other)]
    assert (
        wrong[0] == cases.parts(*both).wrong["one vector"]
        and wrong[1] != cases.parts(*other).wrong["one vector"]
    )
    assert all(
        problem["mistake"].endswith(MISTAKES["work without padding"])
        for problem in diagnosis.memory_problems([both, other], wrong)
    )


def test_a_finding_becomes_a_line_with_its_place():
    problem = diagnosis.problem_of(
        {
            "rank": 2,
            "at": "ranks 0, 2",
            "looks": "sent",
            "expected": 10,
            "got": 20,
            "values": [],
            "words": {},
        }
    )
    assert problem == {
        "rank": 2,
        "expected": 10,
        "got": 20,
        "mistake": "ranks 0, 2: " + MISTAKES["sent"].format(got=20, expected=10),
    }
    assert diagnosis.problem_of({"looks": None}) is None


class Kept:
    def __init__(self, tensor):
        self.inside = [tensor]


@pytest.mark.parametrize(
    "kept",
    [
        lambda t: {"m": t},
        lambda t: [(t,)],
        lambda t: {"a": Kept(t)},
        lambda t: {"a": lambda: t},
        lambda t: [t, t.view(-1)],
        lambda t: t[1:2],
        lambda t: torch.optim.SGD([nn.Parameter(t)], lr=1),
    ],
    ids=range(7),
)
def test_tensors_are_found_wherever_they_live(kept):
    tensor = torch.zeros(10, 2)
    assert held_bytes(kept(tensor)) == 80
    assert held_bytes(kept(tensor), besides=[tensor]) == 0


def test_adams_states_are_counted_and_gradients_are_not():
    own = nn.Parameter(torch.zeros(10, dtype=torch.float64))
    adam = torch.optim.Adam([own], lr=1)
    own.grad = torch.ones_like(own)
    adam.step()
    # two numbers for each, and the count of steps
    assert held_bytes({"adam": adam}, besides=[own]) == 2 * 80 + 4


@pytest.fixture
def alone(tmp_path):
    """torch.distributed with one rank, which the experiments name as their own."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


def test_adam_by_hand_is_adam(alone):
    from manyhands.checks.sharded_states import findings_with_torch as findings
    from manyhands.checks.sharded_states import shard_ranks

    case = shard_ranks.Steps("some key", _group(findings, 1))
    gradients = case._of_all(lambda of_ranks: of_ranks[0])
    assert (
        findings._looks_like(
            torch.cat(shard_ranks.by_hand(case.weights, gradients)), case.right(), [], 1e-13
        )
        is None
    )
    for mistake in ("begun anew", "counted parameters", "eps default", "unmoved", "stale"):
        assert (
            findings._looks_like(dict(case.wrong())[mistake], case.right(), case.wrong(), 1e-12)
            == mistake
        )


def _group(findings, ranks):
    group = object.__new__(findings.Group)
    group.handle, group.ranks, group.rank, group.text = None, ranks, 0, "a group"
    return group


def test_pieces_are_what_torch_cuts_from_a_padded_vector():
    from manyhands.checks.sharded_states.findings_with_torch import piece

    whole = torch.arange(1.0, 6.0).view(5, 1)
    assert [piece(whole, rank, 4).tolist() for rank in range(4)] == [[1, 2], [3, 4], [5, 0], [0, 0]]
    assert piece(whole, 0, 1).tolist() == [1, 2, 3, 4, 5]


def test_whole_numbers_stay_exact_in_bfloat16():
    from manyhands.checks.sharded_states.findings_with_torch import BF16, counts

    for ranks in (1, 2, 3, 4):
        tensors = [counts(f"{ranks} {rank}", 40, ranks=ranks, dtype=BF16) for rank in range(ranks)]
        exact = sum(tensor.double() for tensor in tensors) / ranks
        assert torch.equal((functools.reduce(torch.add, tensors) / ranks).double(), exact)


@pytest.mark.parametrize("ranks", [3, 4])
def test_small_gradients_are_lost_in_bfloat16_and_small_steps_too(ranks):
    from manyhands.checks.sharded_states import number_ranks

    weight = number_ranks._two_to_four("weights", 60)
    gradients = number_ranks._hard_to_add("weights", weight, ranks)
    exact = sum(gradient.double() for gradient in gradients)
    lost = functools.reduce(torch.add, gradients).double() - exact
    assert number_ranks.STEPS * number_ranks.LR * lost.abs().max() / ranks > 2 * diagnosis.ULP
    step = (number_ranks.LR * exact / ranks).bfloat16()
    assert torch.equal(weight - step, weight) and weight.abs().min() >= 2.5


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(
        len(steps) == 2 and all(steps) for steps in HINTS.values()
    )
    assert sum(points for check in CRITERIA.values() for points, _ in check.values()) == 28

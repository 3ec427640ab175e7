"""Unit 15's checks: what is asked for is what it claims to be, and verdicts name the mistake.

Whole answers are tried by the mutants.
"""

import ast
import string
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from manyhands.checks.tensor_parallel import cases, diagnosis
from manyhands.checks.tensor_parallel.messages import CRITERIA, HINTS, MISTAKES

SEEDS = (0, 7, 4711)
MLP = cases.program(2)
SIZES, MESH = {"batch": 8, "in": 6, "hidden": 4, "out": 6}, {"x": 2, "y": 2}


def test_each_check_has_a_hint_of_two_steps():
    assert set(HINTS) == {f"15-{name}" for name in CRITERIA}
    assert all(len(steps) == 2 for steps in HINTS.values())


def test_every_text_can_be_filled_in():
    given = (
        "what",
        "name",
        "rank",
        "size",
        "members",
        "heads",
        "way",
        "got",
        "needed",
        "error",
        "case",
        "operand",
        "layout",
        "mesh",
        "sizes",
        "best",
    )
    texts = [text for key, text in MISTAKES.items() if key != "known"]
    assert {
        field for text in texts for _, field, _, _ in string.Formatter().parse(text) if field
    } <= set(given)
    assert MISTAKES["no layout"].format().count("{dimension: axis}") == 1


@pytest.mark.parametrize(
    "layout, wanted",
    [
        ({}, []),
        ({"batch": "x"}, [("x", 24), ("x", 24)]),
        ({"hidden": "y"}, [("y", 48)]),
        ({"batch": "x", "hidden": "y"}, [("y", 24), ("x", 12), ("x", 12)]),
        ({"in": "x"}, [("x", 32)]),
        ({"out": "y"}, [("y", 32)]),
    ],
)
def test_the_sums_of_two_layers(layout, wanted):
    """Each way to cut two layers has its sums.

    Data parallelism sums each weight's gradient, a cut inner dimension sums the output forward, and
    cut outputs sum the gradient of what comes in.
    """
    sums = [
        (axis, cases.numbers(dims, SIZES, layout, MESH))
        for _, axis, dims in cases.reduced(MLP, layout)
    ]
    assert Counter(sums) == Counter(wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_have_what_tells_mistakes_apart(seed):
    mesh, asked = cases.products(seed)
    assert all(cases.possible(a, b, layout) for (a, b, _), layout, _ in asked)
    assert all(size % 2 == 0 for *_, sizes in asked for size in sizes.values())
    shown = {"x", "y", *cases.names_of(*(dims for product in cases.PRODUCTS for dims in product))}
    assert not shown & {
        *mesh,
        *(name for product, layout, _ in asked for name in cases.names_of(*product, layout)),
    }, "a name that is shown"
    assert any(set(layout) - set(cases.names_of(a, b)) for (a, b, _), layout, _ in asked)
    lone = [layout for (a, b, out), layout, _ in asked if set(layout) & set(b) - {*a, *out}]
    assert lone, "a dimension of one operand alone that is summed away"
    assert any(set(a) & set(b) & set(out) & set(layout) for (a, b, out), layout, _ in asked), (
        "a dimension of all three is cut"
    )
    assert any(len(cases.rule(*product, layout)[0]) == 2 for product, layout, _ in asked), (
        "two axes are summed over"
    )
    assert Counter(possible for *_, possible in cases.refusals(seed)) == {True: 3, False: 4}


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_need_every_kind_of_sum(seed):
    asked, kinds = cases.programs(seed), set()
    assert any(
        len(cases.rule(*product, layout)[0]) == 2
        for products, _, layout, _ in asked
        for product in products
    ), "two axes are summed over"
    for products, sizes, layout, mesh in asked:
        back = dict(
            zip(
                cases.dimensions(products),
                cases.dimensions(cases.program(len(products))),
                strict=False,
            )
        )
        if any(len(dims) > 2 for product in products for dims in product):
            continue
        products, sizes, layout = (cases.rename(item, back) for item in (products, sizes, layout))
        assert cases.runs_well(products, sizes, layout, mesh) and set(layout.values()) == set(mesh)
        assert len(set(sizes.values())) == len(sizes)
        kinds |= {
            (len(products), way, dims)
            for way, axis, dims in cases.reduced(products, layout)
            if mesh[axis] > 1
        }
    for depth in (2, 3):
        outputs, firsts, weights = (
            [product[place] for product in cases.program(depth)] for place in (2, 0, 1)
        )
        assert {("forward", dims) for dims in outputs} | {
            ("backward", dims) for dims in [*firsts[1:], *weights]
        } == {kind[1:] for kind in kinds if kind[0] == depth}
    assert any(
        mesh[axis] == 1
        for products, _, layout, mesh in asked
        for _, axis, _ in cases.reduced(products, layout)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_each_job_has_a_trap(seed):
    """A learner who falls into the trap chooses a wrong layout.

    It does not fit, or it fits and sends more.
    """
    for job, trap in zip(cases.jobs(seed), cases.TRAPS, strict=True):
        best, layout = diagnosis.cheapest(job)
        assert best > 0 and diagnosis.layout_problems(job, layout) == {
            "fits": None,
            "cheapest": None,
        }
        _, taken = min(cases.seen_by(trap, *job), key=lambda priced: priced[0])
        judgement = diagnosis.layout_problems(job, taken)
        assert judgement["cheapest"], trap
        assert MISTAKES["thought " + trap] in diagnosis.all_layout_problems([job], [taken])[0][
            "fits" if judgement["fits"] else "cheapest"
        ]["mistake"] or any(
            cases.seen_by(other, *job) and diagnosis._thought(other, job, taken)
            for other in cases.TRAPS[: cases.TRAPS.index(trap)]
        )
        if trap in (
            "no activations",
            "no data",
            "no last output",
            "three copies",
            "one copy",
            "numbers",
            "just over",
        ):
            assert (
                "not fit" in judgement["fits"]["mistake"]
                or "not with the data" in judgement["fits"]["mistake"]
            )
        elif trap in ("odd batch", "odd weight"):
            assert "cannot be divided" in judgement["fits"]["mistake"]
        else:
            assert judgement["fits"] is None


def test_what_is_held_and_sent():
    """The bytes equal sums by hand.

    Cut by batch over 2 ranks, weights are whole and their gradients summed.
    """
    assert cases.held_bytes(MLP, SIZES, {"batch": "x"}, MESH) == 4 * (
        4 * (6 * 4 + 4 * 6) + 4 * 6 + 4 * 4 + 4 * 6
    )
    assert cases.sent_bytes(MLP, SIZES, {"batch": "x"}, {"x": 4, "y": 2}) == 4 * 2 * 3 / 4 * (
        24 + 24
    )


def test_layouts_that_are_none():
    job = (MLP, SIZES, MESH, 10_000)
    assert [
        diagnosis.layout_of(answer, job) for answer in (None, ["x"], {"batch": "z"}, {"depth": "x"})
    ] == [None] * 4
    assert diagnosis.layout_of({"batch": "x", "in": None}, job) == {"batch": "x"}
    assert (
        "two dimensions"
        in diagnosis.layout_problems(job, {"in": "x", "hidden": "x"})["fits"]["mistake"]
    )
    assert diagnosis.layout_evidence(job, None) == {"fits": -1.0, "cheapest": -1.0}


@pytest.mark.parametrize("answer", [None, 3, ["x"], [["x"], ["z"], []], [[], []], [["x"], 1, []]])
def test_tables_that_are_none(answer):
    assert diagnosis.table_of(answer, MESH) is None


def test_tables_may_be_sets_and_tuples():
    assert diagnosis.table_of(({"y", "x"}, (), iter("x")), MESH) == [["x", "y"], [], ["x"]]


@pytest.mark.parametrize(
    "table, place, fragment",
    [
        ([["x"], [], []], 0, "next to each other"),
        ([[], [], []], 0, "was summed away"),
        ([["y", "y"], [], []], 0, "twice"),
        ([["y"], ["x"], []], 1, "a is cut along an axis"),
        ([["y"], ["y"], []], 1, "a is cut"),
        ([["y"], [], []], 2, "only the other operand is cut"),
        ([["y"], [], ["x", "x"]], 2, "twice"),
    ],
)
def test_a_wrong_table_is_told(table, place, fragment):
    case = (("batch", "in"), ("in", "hidden"), ("batch", "hidden")), {"batch": "x", "in": "y"}, {}
    problems = diagnosis.table_problems([(case, table, [[(False, [])] * 3])], (place,))
    assert fragment in problems[0]["mistake"]
    assert not diagnosis.table_problems([(case, table, [[(True, [])] * 3])], (place,))


@pytest.mark.parametrize(
    "answer, fragment",
    [
        (None, "list of pairs"),
        ([], "forward only"),
        ([("x", 24.0)], "different all-reduces"),
        ([("x", 24.0)] * 2 + [("x", 48.0)], "different all-reduces"),
    ],
)
def test_a_wrong_price_is_told(answer, fragment):
    case = MLP, SIZES, {"batch": "x"}, MESH
    seen = [("x", 24), ("x", 24)]
    assert fragment in diagnosis.axes_problems([case], [answer], [seen])[0]["mistake"]
    assert diagnosis.axes_problems([case], [[("x", 1.0), ("x", 2.0)]], [seen]) == []
    assert diagnosis.numbers_problem(case, [("x", 24.0)] * 2, seen) is None
    assert diagnosis.numbers_problem(case, [("x", 23.0)] * 2, seen)


def test_a_number_that_is_no_number_is_no_pair():
    assert (
        diagnosis.pairs([("x", "many")]) is None
        and diagnosis.pairs([("x",)]) is None
        and diagnosis.pairs(5) is None
    )


def case_of(**changed):
    value = {
        "name": "output",
        "right": True,
        "looks": "other",
        "sample": [1.0],
        "wanted": [1.0],
        "shape": [2],
        "wanted shape": [2],
    }
    value |= changed.pop("value", {})
    return {
        "what": "row",
        "rank": 1,
        "size": 3,
        "members": [0, 1, 3],
        "value": value,
        "detached": False,
        "touched": [],
        "gradients": [{**value, "name": "x"}],
        "forward": [1, 32],
        "backward": [0, 0],
        "sums": [[1, 32], [0, 0]],
    } | changed


@pytest.mark.parametrize(
    "looks",
    [
        "nothing",
        "no tensor",
        "dtype",
        "shape",
        "not finite",
        "other",
        "other in a group",
        "bias on each",
    ],
)
def test_a_wrong_output_is_told(looks):
    problem = diagnosis.value_problem(case_of(value={"right": False, "looks": looks}))
    assert problem["rank"] == 1 and problem["mistake"] and "{" not in problem["mistake"]


def test_what_a_layer_may_not_do_is_told():
    assert (
        diagnosis.value_problem(case_of())
        is diagnosis.gradients_problem(case_of())
        is diagnosis.calls_problem(case_of())
        is None
    )
    assert "has changed x" in diagnosis.value_problem(case_of(touched=["x"]))["mistake"]
    assert (
        "changed the gradient"
        in diagnosis.gradients_problem(case_of(touched=["gradient"]))["mistake"]
    )
    assert "outside the graph" in diagnosis.gradients_problem(case_of(detached=True))["mistake"]
    assert "was not run" in diagnosis.gradients_problem(case_of(value={"shape": None}))["mistake"]
    assert "no all-reduce in forward" in diagnosis.calls_problem(case_of(forward=[0, 0]))["mistake"]
    assert (
        "Nothing has to be sent in backward"
        in diagnosis.calls_problem(case_of(backward=[1, 32]))["mistake"]
    )
    assert "too many bytes" in diagnosis.calls_problem(case_of(forward=[1, 64]))["mistake"]


@pytest.mark.parametrize(
    "looks",
    [
        "nothing",
        "own",
        "times",
        "divided",
        "nothing summed",
        "shape",
        "dtype",
        "not finite",
        "other",
        "other in a group",
    ],
)
@pytest.mark.parametrize(
    "what, name",
    [("row", "b"), ("copy", "x"), ("sum", "x"), ("mlp", "down_bias"), ("attention", "qkv")],
)
def test_a_wrong_gradient_is_told(what, name, looks):
    gradient = {"name": name, "right": False, "looks": looks, "sample": [2.0], "wanted": [1.0]}
    problem = diagnosis.gradients_problem(case_of(what=what, gradients=[gradient]))
    assert problem["got"] == [2.0] and "{" not in problem["mistake"]


@pytest.mark.parametrize(
    "looks, follows",
    [("other", True), ("other in a group", True), ("not finite", True), ("times", False)],
)
def test_a_wrong_gradient_of_a_wrong_output_may_follow_from_it(looks, follows):
    gradient = {"name": "x", "right": False, "looks": looks, "sample": [2.0], "wanted": [1.0]}
    problem = diagnosis.gradients_problem(
        case_of(what="loss", value={"right": False}, gradients=[gradient])
    )
    assert ("Repair the criterion above first" in problem["mistake"]) == follows


def test_what_is_wrong_in_small_groups_only_is_told():
    whole, small = case_of(size=4, members=[0, 1, 2, 3]), case_of(value={"right": False})
    diagnosis.mark_small_groups([whole, small])
    assert "in the group of the ranks [0, 1, 3]" in diagnosis.value_problem(small)["mistake"]
    whole, small = case_of(size=4, value={"right": False}), case_of(value={"right": False})
    diagnosis.mark_small_groups([whole, small])
    assert "group" not in diagnosis.value_problem(small)["mistake"]


def test_exceptions_other_than_value_errors_are_told():
    def unsure(a, b, out, layout):
        raise KeyError("x")

    mistakes = defaultdict(list)
    for product, layout, possible in cases.refusals(0):
        mistakes[possible].append(
            diagnosis.refusal_problem(
                (product, layout, possible), diagnosis.refusal(unsure, product, layout)
            )["mistake"]
        )
    assert all("Say so in a ValueError" in text for text in mistakes[False]) and all(
        "does not matter" in text for text in mistakes[True]
    )


def test_a_stub_that_is_called_within_is_told_by_its_own_name():
    from manyhands.checks import tensor_parallel
    from manyhands.checks.report import Stopped

    def inner():
        raise NotImplementedError()

    def outer(sizes):
        sizes.clear()
        return inner()

    sizes = {"batch": 8}
    with pytest.raises(Stopped, match="inner is not written yet"):
        tensor_parallel._ask(outer, sizes)
    assert sizes == {"batch": 8}
    with pytest.raises(Stopped, match="outer raised AttributeError"):
        tensor_parallel._ask(outer, 3)


def test_each_output_that_is_recognised_has_words():
    """Every key of `wrong` in the experiments has a message.

    The keys of `_wrong_qkv` and `_wrong_out` do, too. They are grouped by the function in which
    they are.
    """
    tree = ast.parse((Path(diagnosis.__file__).parent / "ranks.py").read_text())
    places = {
        "column": ["column"],
        "row": ["row"],
        "mlp": ["mlp"],
        "attention": ["attention"],
        "f_and_g": ["copy", "sum"],
        "_wrong_qkv": ["qkv"],
        "_wrong_out": ["out"],
    }
    count = 0
    for function in tree.body:
        for node in ast.walk(function) if getattr(function, "name", None) in places else ():
            named = (
                isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "wrong"
            ) or isinstance(node, ast.Return)
            for key in node.value.keys if named and isinstance(node.value, ast.Dict) else ():
                assert any((place, key.value) in MISTAKES for place in places[function.name]), (
                    function.name,
                    key.value,
                )
                count += 1
    assert count > 30

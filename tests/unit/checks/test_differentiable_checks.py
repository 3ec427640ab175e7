"""Unit 11: how wrong gradients are named, and the picture of several ranks' graphs."""

from types import SimpleNamespace

import pytest

from manyhands.checks import on_ranks
from manyhands.checks.differentiable_communication import diagnosis
from manyhands.checks.differentiable_communication.messages import CRITERIA, HINTS, MISTAKES
from manyhands.plots import graph

OWN = [[1.0, 2.0], [3.0, 5.0], [4.0, 9.0]]


@pytest.mark.parametrize(
    "got, says",
    [
        ([8.0, 16.0], None),
        (None, "returned None for x instead of the sum"),
        ([1.0, 2.0], "the root's own gradient"),
        ([8 / 3, 16 / 3], "because it is the mean"),
        ([4.0, 9.0], "Gathering is not enough"),
        ([0.0, 0.0], "always at rank 0"),
        ([8.0, 17.0], "The values are wrong"),
        ([7.0, 7.0], "in the order of memory"),
        ([8.00001, 16.0], "about 7 digits"),
    ],
)
def test_a_wrong_gradient_at_the_root_is_named(got, says):
    problem = diagnosis.broadcast_problem(
        0, {"own": OWN, "me": 0, "root": 0, "got": got, "spoiled": 0.0, "by memory": [7.0, 7.0]}
    )
    assert problem is None if says is None else says in problem["mistake"]


def test_a_right_sum_that_was_written_into_the_callers_gradient_is_told():
    case = {"own": OWN, "me": 0, "root": 0, "got": [8.0, 16.0], "spoiled": 1.0}
    assert "reduce a copy" in diagnosis.broadcast_problem(0, case)["mistake"]
    assert (
        "writes wrong numbers"
        in diagnosis.broadcast_problem(0, {**case, "got": [1.0, 2.0]})["mistake"]
    )
    assert (
        "and so does zero_()"
        in diagnosis.elsewhere_problem(1, {**case, "me": 1, "got": None})["mistake"]
    )


@pytest.mark.parametrize(
    "me, got, says",
    [
        (1, None, None),
        (1, [0.0, 0.0], None),
        (1, [8.0, 16.0], "This rank returns the sum"),
        (0, [8.0, 16.0], "although the root is 2"),
        (1, [3.0, 5.0], "returns its own gradient"),
        (1, [3.0, 0.0], "is not zero"),
    ],
)
def test_what_is_not_the_roots_has_no_gradient(me, got, says):
    problem = diagnosis.elsewhere_problem(
        me, {"own": OWN, "me": me, "root": 2, "got": got, "size": 2, "spoiled": 0.0}
    )
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize(
    "got, says",
    [
        ([9.0], None),
        (None, "no gradient"),
        ([3.0], "itself has for its own piece"),
        ([4.5], "nothing must be corrected"),
        ([10.0], "added up"),
        ([6.0], "single rank"),
        ([8.0], "of a different rank's piece"),
        ([4.0], "in the article's table"),
        ([1.0], "The values are wrong"),
    ],
)
def test_a_wrong_gradient_of_a_piece_is_named(got, says):
    own = [[[3.0], [7.0]], [[6.0], [1.0]]]  # own[r][j]: what rank r has for piece j
    problem = diagnosis.allgather_problem(
        0, {"own": own, "me": 0, "got": got, "spoiled": 0.0, "by memory": [2.0]}
    )
    assert problem is None if says is None else says in problem["mistake"]


def test_swapped_gradients_are_told_from_wrong_ones():
    serial = [[1.0, 2.0], [3.0, 4.0]]
    assert diagnosis.order_problem(0, {"got": None, "serial": serial, "spoiled": 0.0}) is None
    assert (
        "has changed the gradient"
        in diagnosis.order_problem(0, {"got": None, "serial": serial, "spoiled": 1.0})["mistake"]
    )
    assert diagnosis.order_problem(0, {"got": serial, "serial": serial}) is None
    assert (
        "swapped" in diagnosis.order_problem(0, {"got": serial[::-1], "serial": serial})["mistake"]
    )
    assert (
        "wrong"
        in diagnosis.order_problem(0, {"got": [[1.0, 2.0], [3.0, 5.0]], "serial": serial})[
            "mistake"
        ]
    )


@pytest.mark.parametrize("sent, says", [(8, None), (16, "dist.reduce"), (0, "does not know")])
def test_numbers_moved_are_counted_over_the_group(sent, says):
    group = [(rank, {"sent": sent / 3, "size": 4}) for rank in range(3)]
    problem = diagnosis.total_problem(group, 2, "broadcast moves")
    assert problem is None if says is None else says in problem["mistake"]


def test_the_unconnected_graph_is_told_before_what_follows_from_it():
    lost = {"error": "... whose result is not part of any graph here", "me": 0}
    late = {"error": "Rank 1 waited 2 s in recv", "me": 1}
    none = {"serial value": None, "serial": {"stage": [1.0]}, "got": {"stage": None}}
    problems = sorted(
        (diagnosis.connect_problem(rank, case) for rank, case in enumerate([late, lost, none])),
        key=diagnosis.most_telling,
    )
    assert [problem["rank"] for problem in problems] == [1, 2, 0]


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())


class Written:
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Stub(Written):
    @staticmethod
    def backward(ctx, gradient):
        """What a learner is given."""
        # YOUR CODE HERE
        raise NotImplementedError()


def stub():
    raise NotImplementedError()


@pytest.mark.parametrize(
    "value, says", [(Written, None), (len, None), (Stub, "f.backward"), (stub, "f")]
)
def test_a_stub_is_known_before_any_rank_waits_for_another(value, says, monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(user_ns={"f": value}))
    if says is None:
        assert on_ranks.learners("f") is value
    else:
        with pytest.raises(on_ranks.UnwrittenError, match=f"^{says}$"):
            on_ranks.learners("f")
    with pytest.raises(on_ranks.UnwrittenError, match="^g$"):
        on_ranks.learners("g")


class Call:
    """A node as autograd has them, without torch."""

    def __init__(self, name, *inputs, **facts):
        self._name, self.next_functions = name, [(node, 0) for node in inputs]
        self.__dict__.update(facts)

    def name(self):
        return self._name


class Output:
    def __init__(self, grad_fn):
        self.grad_fn = grad_fn


def there_and_back(connect):
    weight = object()
    send = Call(
        "SendBackward",
        Call("MulBackward0", Call("torch::autograd::AccumulateGrad", variable=weight)),
        peer=1,
        tag=0,
    )
    back = Call(
        "RecvBackward",
        send if connect else Call("torch::autograd::AccumulateGrad", variable=object()),
        peer=1,
        tag=1,
    )
    came = Call(
        "RecvBackward", Call("torch::autograd::AccumulateGrad", variable=object()), peer=0, tag=0
    )
    gone = Call("SendBackward", came, peer=0, tag=1)
    return {
        0: graph.walk(Output(Call("MulBackward0", back)), Output(send), names={"w": weight}),
        1: graph.walk(Output(gone)),
    }


@pytest.mark.parametrize("connect", [False, True])
def test_walk_says_what_backward_reaches(connect):
    ranks = there_and_back(connect)
    reached = {node["label"]: node["reached"] for node in ranks[0]["nodes"]}
    assert reached["send"] is reached["w"] is connect and reached["recv"]
    assert [
        (sender, ranks[sender]["nodes"][i]["call"], receiver, ranks[receiver]["nodes"][j]["call"])
        for sender, i, receiver, j in graph.messages(ranks)
    ] == [(0, "send", 1, "recv"), (1, "send", 0, "recv")]
    assert (
        "rank 1 sends a gradient to rank 0, which never receives it"
        in graph.table({"graphs": ranks})
    ) is not connect


def test_levels_follow_the_forward_pass_across_ranks():
    ranks = there_and_back(True)
    at = {
        (rank, ranks[rank]["nodes"][i]["label"]): level
        for (rank, i), level in graph.levels(ranks).items()
        if ranks[rank]["nodes"][i]["call"]
    }
    assert [at[key] for key in ((0, "send"), (1, "recv"), (1, "send"), (0, "recv"))] == [2, 3, 4, 5]


def test_the_picture_is_the_same_each_time_and_has_a_cross_where_a_gradient_is_lost():
    text = {
        connect: graph.graph({"one": there_and_back(connect)}).text for connect in (False, True)
    }
    assert text[True] == graph.graph({"one": there_and_back(True)}).text
    assert all(word in text[True] for word in ("rank 0", "rank 1", "send", "recv", ">w<"))
    assert text[False].count("stroke-dasharray") > text[True].count("stroke-dasharray")

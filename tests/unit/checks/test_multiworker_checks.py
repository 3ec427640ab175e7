"""Unit 07: how wrong layouts, fits, losses, shards, inputs and checkpoints are named."""

import json

import pytest

from manyhands.checks.multiworker import diagnosis
from manyhands.checks.multiworker import input_diagnosis as inputs
from manyhands.checks.multiworker.messages import CRITERIA, HINTS, MISTAKES

LAYOUT = (["a", "a", "b", "b"], 5000, {"chief": 1, "worker": 2, "ps": 1})
RIGHT = {"chief": ["a:5000"], "worker": ["a:5001", "b:5000"], "ps": ["b:5001"]}


def test_the_layout_of_the_lab_gives_its_config():
    assert diagnosis.config_of(*LAYOUT, 2) == {
        "cluster": RIGHT,
        "task": {"type": "worker", "index": 1},
    }
    assert diagnosis.config_of(*LAYOUT, 3)["task"] == {"type": "ps", "index": 0}


@pytest.mark.parametrize(
    "answer, says",
    [
        ({"cluster": {}}, "return a text"),
        ("{'cluster': 1}", "not JSON"),
        ('{"cluster": {}}', "two parts"),
        ("null", "two parts"),
        ("[]", "two parts"),
        ('{"cluster": [], "task": {"type": "worker", "index": 0}}', "two parts"),
    ],
)
def test_a_text_that_is_no_config_is_told(answer, says):
    config, problem = diagnosis.parsed(answer)
    assert config is None and says in problem["mistake"]


@pytest.mark.parametrize(
    "changed, says",
    [
        ({}, None),
        ({"chief": ["localhost:5000"]}, "On every other host"),
        ({"chief": ["a"]}, "has no port"),
        ({"chief": ["a:5001"]}, "appears twice"),
        ({"ps": ["b:5002"]}, "the first process takes 5000"),
        ({"worker": ["b:5000", "a:5001"]}, "not in the order"),
        ({"evaluator": ["c:1"]}, "The kinds"),
        ({"chief": "a:5000"}, "the first process takes"),
    ],
)
def test_a_wrong_cluster_is_named(changed, says):
    configs = [{"cluster": {**RIGHT, **changed}}] * 4
    problem = diagnosis.cluster_problem(LAYOUT, configs)
    assert problem is None if says is None else says in problem["mistake"]
    if says:
        late = diagnosis.cluster_problem(LAYOUT, [{"cluster": RIGHT}, *configs[1:]])
        assert "a different cluster from process 0" in late["mistake"]


@pytest.mark.parametrize(
    "task, says",
    [
        ({"type": "worker", "index": 1}, None),
        ({"type": "worker", "index": 2}, "the index counts within its kind"),
        ({"type": "worker", "index": "1"}, "not text"),
        ({"type": "worker", "index": True}, "is worker 1"),
        ({"type": "ps", "index": 0}, "is a worker"),
        ({"type": "worker", "index": None}, "is worker 1"),
    ],
)
def test_a_wrong_task_is_named(task, says):
    configs = [diagnosis.config_of(*LAYOUT, number) for number in range(4)]
    configs[2] = {"cluster": RIGHT, "task": task}
    problem = diagnosis.task_problem(LAYOUT, configs)
    assert problem is None if says is None else says in problem["mistake"]


FITTED = {
    "samples": 18,
    "batch": 6,
    "epochs": 2,
    "workers": 3,
    "right steps": 6,
    "right": [1.0],
    "got": [2.0],
}


@pytest.mark.parametrize(
    "steps, says", [(6, None), (18, "6 updates in 2 epochs"), (None, "Return the model")]
)
def test_a_wrong_number_of_steps_is_named(steps, says):
    problem = diagnosis.steps_problem(1, {**FITTED, "steps": steps})
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize("looks", [key[1] for key in MISTAKES if key[0] == "fit"])
def test_every_wrong_fit_has_its_text(looks):
    assert "{" not in diagnosis.weights_problem(2, {**FITTED, "looks": looks})["mistake"]
    assert diagnosis.weights_problem(2, {**FITTED, "looks": None}) is None


@pytest.mark.parametrize("looks", [key[1] for key in MISTAKES if key[0] == "loss"])
def test_every_wrong_loss_has_its_text(looks):
    case = {"sizes": [3, 2, 0], "looks": looks, "right": [1.0], "got": [2.0]}
    assert "{" not in diagnosis.loss_problem(case)["mistake"]
    assert diagnosis.loss_problem({**case, "looks": None}) is None


# What the workers really saw (TensorFlow 2.21, experimental_distribute_dataset; the tutorial prints
# the first four anew in each build).
MEASURED = [
    (("DATA", [5, 2, 3, 2], 4, 2), [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]]),
    (("FILE", [5, 2, 3, 2], 4, 2), [[0, 1, 2, 3, 4, 7, 8, 9], [5, 6, 10, 11]]),
    (("OFF", [5, 2, 3, 2], 4, 2), [list(range(12))] * 2),
    (("DATA", [13], 5, 2), [[0, 1, 2, 5, 6, 7, 10, 11], [3, 4, 8, 9, 12]]),
    (("DATA", [9], 4, 2), [[0, 1, 4, 5, 8], [2, 3, 6, 7]]),
    (("DATA", [13], 5, 3), [[0, 1, 5, 6, 10], [2, 3, 7, 8, 11], [4, 9, 12]]),
    (("DATA", [12], 5, 3), [[0, 1, 5, 6, 10], [2, 3, 7, 8, 11], [4, 9]]),
    (("DATA", [9], 4, 3), [[0, 1, 4, 5, 8], [2, 3, 6, 7], []]),
    (("FILE", [5, 2, 3, 2], 4, 3), [[0, 1, 2, 3, 4, 10, 11], [5, 6], [7, 8, 9]]),
]


@pytest.mark.parametrize("case, seen", MEASURED)
def test_the_prediction_is_what_the_workers_saw(case, seen):
    assert diagnosis.who_sees(*case) == seen
    assert diagnosis.seen_problem(case, seen) is None


@pytest.mark.parametrize(
    "case, answer, says",
    [
        (("DATA", [9], 4, 2), [[0, 2, 4, 6, 8], [1, 3, 5, 7]], "distributed one by one"),
        (("DATA", [9], 4, 2), [[0, 1, 2, 3, 4], [5, 6, 7, 8]], "not cut into 2 blocks"),
        (("DATA", [10], 4, 2), [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7]], "last batch"),
        (("DATA", [10], 5, 4), [[0, 1, 5, 6], [2, 7], [3, 8], [4, 9]], "ceil(5 / 4)"),
        (("DATA", [9], 4, 2), [[0], [1]], "Cut each global batch"),
        (("FILE", [1, 1, 1, 1], 2, 2), [[0, 1], [2, 3]], "distributed in turn"),
        (("FILE", [1, 1, 1, 1], 2, 2), [[0], [2]], "files 1, 1 + 2"),
        (("OFF", [4], 2, 2), [[0, 1], [2, 3]], "no worker shards"),
    ],
)
def test_a_wrong_prediction_is_named(case, answer, says):
    assert says in diagnosis.seen_problem(case, answer)["mistake"]


@pytest.mark.parametrize(
    "answer, lists",
    [
        ([[0, 1.0], (2,)], [[0, 1], [2]]),
        ([[0]], None),
        (None, None),
        ("ab", None),
        ([["x"], []], None),
        (3, None),
    ],
)
def test_answers_become_lists_or_are_told(answer, lists):
    assert diagnosis.plain_lists(answer, 2) == lists
    if lists is None:
        assert (
            "one list of sample numbers for each of 2"
            in diagnosis.seen_problem(("OFF", [1], 2, 2), lists)["mistake"]
        )


OTHER = [[[3], [0], [5]], [[1], [2], [4]]]


def pipelines(first, second=OTHER, reseeded=OTHER, **changes):
    return {
        "n": 6,
        "batch": 4,
        "pipelines": 2,
        "replicas": 4,
        "error": None,
        "labels": True,
        "stored": list(range(6)),
        "epochs": [first, second, reseeded],
        **changes,
    }


GOOD = [[[1], [4], [3]], [[5], [0], [2]]]


@pytest.mark.parametrize(
    "case, once, batch, order",
    [
        (pipelines(GOOD), None, None, None),
        (pipelines(GOOD, labels=False), "do not belong together", None, None),
        (
            pipelines([], error="not a dataset"),
            "Return a tf.data.Dataset",
            "Return a tf.data.Dataset",
            "Return a tf.data.Dataset",
        ),
        (pipelines([[[1], [4], [3]], [[1], [0], [2]]]), "in a different order", None, None),
        (pipelines([[[1], [0], [3], [2], [4], [5]]] * 2), "Every worker has all", None, None),
        (pipelines([[[4], [0]], [[5], [1]]]), "Shard by num_input_pipelines", None, None),
        (pipelines([[[1], [4]], [[5], [0], [2]]]), "seen by no worker", None, None),
        (pipelines([[[1], [4], [3]], [[5], [0], [2], [1]]]), "more than once", None, None),
        (pipelines([[[1, 4, 3]], [[5, 0, 2]]]), None, "(4) is 1", None),
        (pipelines([[[1, 4], [3]], [[5, 0], [2]]]), None, "the batch of one replica", None),
        (pipelines([[[1, 4, 3, 5]], [[0, 2]]]), None, "which is the global batch", None),
        (pipelines([[[0], [2], [4]], [[1], [3], [5]]]), None, None, "stored order"),
        (
            pipelines(
                [[[2], [4], [0]], [[3], [5], [1]]],
                [[[1], [3], [5]], [[2], [4], [0]]],
                [[[4], [0], [2]], [[5], [1], [3]]],
            ),
            None,
            None,
            "only begins at a different place",
        ),
        (
            pipelines(
                [[[1], [0], [4]], [[2], [3], [5]]],
                [[[0], [2], [5]], [[1], [4], [3]]],
                [[[1], [2], [4]], [[0], [3], [5]]],
            ),
            None,
            None,
            "buffer of `shuffle`",
        ),
        (
            pipelines(GOOD, error="arrays changed"),
            "has changed x or y",
            "has changed x or y",
            "has changed x or y",
        ),
        (pipelines([[[1], [4], [3], [5], [0], [2], [1]], [[5]]]), "repeats itself", None, None),
        (pipelines(GOOD, GOOD), None, None, "the same order"),
        (pipelines(GOOD, reseeded=GOOD), None, None, "A different seed"),
        (pipelines(GOOD, stored=[5, 1, 4, 0, 3, 2]), None, None, "stored order"),
        (
            pipelines(GOOD, [[[4], [1], [3]], [[0], [2], [5]]]),
            None,
            None,
            "shuffle all samples first",
        ),
    ],
)
def test_a_wrong_input_is_named(case, once, batch, order):
    for problem, says in (
        (inputs.once_problem(case), once),
        (inputs.batch_problem(case), batch),
        (inputs.order_problem(case), order),
    ):
        assert problem is None if says is None else says in problem["mistake"]


def writers(**changes):
    answers = [
        {"chief": rank == 1, "wrote": True, "to the chief's": rank == 1, "left": [], "saved": False}
        for rank in range(3)
    ]
    for rank, change in changes.items():
        answers[int(rank[1])].update(change)
    return answers


@pytest.mark.parametrize(
    "changes, got, says",
    [
        ({}, [1.0, 2.0], None),
        ({}, None, "no checkpoint"),
        ({"r1": {"saved": True}}, None, "adds a number"),
        ({}, [1.0, 3.0], "does not hold"),
        ({}, [], "does not hold"),
        ({"r2": {"wrote": False}}, None, "Worker 2 has not called"),
        ({"r0": {"to the chief's": True}}, [1.0, 2.0], "two processes write to one file"),
        (
            {"r0": {"to the chief's": True}, "r1": {"to the chief's": False}},
            None,
            "here it is worker 1",
        ),
    ],
)
def test_a_wrong_checkpoint_is_named(changes, got, says):
    problem = inputs.file_problem(writers(**changes), {"got": got, "right": [1.0, 2.0]})
    assert problem is None if says is None else says in problem["mistake"]


def test_what_is_left_behind_is_named():
    assert inputs.clean_problem(writers(r1={"left": ["x"]}), []) is None
    assert (
        "Worker 2 has left ck.index"
        in inputs.clean_problem(writers(r2={"left": ["ck.index"]}), [])["mistake"]
    )
    assert "other.txt is next to" in inputs.clean_problem(writers(), ["other.txt"])["mistake"]


def test_every_check_has_a_hint_and_every_mistake_a_text():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())
    assert json.dumps(diagnosis.config_of(*LAYOUT, 0))


def test_a_time_limit_on_a_busy_machine_is_not_told_as_a_wrong_answer():
    from types import SimpleNamespace

    from manyhands.checks.on_ranks import RankReport

    fault = SimpleNamespace(
        kind="limit",
        text="TIME LIMIT: the cell has run for more than 60 s.\nrank 0 computes at line 3",
        culprits=[],
        differs="",
    )
    summary = RankReport("loss", None, CRITERIA, MISTAKES)._summarise_fault(fault, None)
    assert summary.startswith("TIME LIMIT") and "the machine may be busy" in summary

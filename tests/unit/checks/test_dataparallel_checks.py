"""Unit 03's checks: what they call right is what PyTorch's own code does.

There are also tests of how wrong answers are named, and of the picture's numbers.
"""

import copy

import pytest
import torch

from manyhands.checks.torch_dataparallel import diagnosis, forward
from manyhands.checks.torch_dataparallel import replicas_with_torch as replicas
from manyhands.checks.torch_dataparallel import threads_with_torch as threads
from manyhands.checks.torch_dataparallel import with_torch as parts
from manyhands.checks.torch_dataparallel.messages import CRITERIA, HINTS, MISTAKES
from manyhands.plots.phases import phases, phases_table


@pytest.fixture
def torchs_own(monkeypatch):
    """torch.nn.parallel's scatter and gather, without the two operations that need a GPU.

    These are replaced.
    """
    from torch.nn.parallel import scatter_gather

    class Scatter:
        apply = staticmethod(lambda devices, sizes, dim, x: x.chunk(len(devices), dim))

    class Gather:
        apply = staticmethod(
            lambda device, dim, *xs: torch.cat([x.view(1) if x.dim() == 0 else x for x in xs], dim)
        )

    monkeypatch.setattr(scatter_gather, "Scatter", Scatter)
    monkeypatch.setattr(scatter_gather, "Gather", Gather)
    return scatter_gather


@pytest.mark.parametrize("n, k", [(12, 4), (10, 4), (5, 4), (9, 8), (2, 4)])
def test_what_is_right_is_what_torch_does(torchs_own, n, k):
    import random

    draw = random.Random(n)
    value = parts.nested_value(draw, n)
    pieces = parts.cut(value, k)
    assert parts.to_plain(pieces) == parts.to_plain(list(torchs_own.scatter(value, range(k))))
    outputs = [
        {"rows": piece[0], "more": (piece[1]["mask"], [piece[1]["mask"].sum()]), "none": None}
        for piece in pieces
    ]
    assert parts.to_plain(parts.join(outputs)) == parts.to_plain(torchs_own.gather(outputs, "cpu"))


def test_torch_still_calls_a_replica_without_inputs(torchs_own):
    """The tutorial and a mutant say so: what is no tensor wakes replicas that have no rows."""
    inputs, kwargs = torchs_own.scatter_kwargs((torch.arange(5),), {"flag": True}, range(4))
    assert [len(args) for args in inputs] == [1, 1, 1, 0] and len(kwargs) == 4


def test_the_gpu_experiment_compares_all_that_is_told():
    devices = ["cpu"] * 3

    def by_hand(module, inputs, kwargs, devices, output_device):
        pieces = parts.cut(inputs, len(devices))
        copies = [replica_of(module, i) for i in range(len(pieces))]
        return parts.join([copied(*piece) for copied, piece in zip(copies, pieces, strict=True)])

    def replica_of(module, i):
        memo = {
            id(tensor): tensor.clone() if i else tensor
            for tensor in (*module.parameters(), *module.buffers())
        }
        return copy.deepcopy(module, memo)

    def wrap(module):
        return lambda x: by_hand(module, (x,), {}, devices, "cpu")

    for seed in (0, 7):
        assert [case["looks"] for case in replicas.forward_gpus(by_hand, seed, devices, wrap)] == [
            None
        ]
        # other scalars, other buffers
        whole = replicas.forward_gpus(
            lambda module, inputs, *more: module(*inputs), seed, devices, wrap
        )
        assert whole[0]["looks"] == "other"


def test_a_missing_gpu_blocks_one_criterion_only(monkeypatch, capsys):
    from manyhands.checks import torch_dataparallel

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torch_dataparallel.forward(lambda *args: None)
    shown = capsys.readouterr().out
    assert shown.count("FAIL") == 3 and shown.count("BLOCKED") == 1 and "two GPUs or more" in shown


@pytest.mark.parametrize(
    "got, right, wrong, looks",
    [
        ([1.0, ["a", 2]], [1.0 + 1e-12, ["a", 2]], {}, None),
        ([1.0, 2.0], [2.0, 4.0], {"half": [1.0, 2.0]}, "half"),
        (["tuple", [1]], ["list", [1]], {}, "types"),
        (["list", [1]], ["list", [2]], {}, "other"),
        # as deep as nested inputs are when they are told
        ([[[[[[[[[[[1]]]]]]]]]]], [[[[[[[[[[[2]]]]]]]]]]], {}, "other"),
        ([True], [1], {}, "other"),
        ([None], ["None"], {}, "other"),
    ],
)
def test_answers_are_named(got, right, wrong, looks):
    assert diagnosis.case(got, right, wrong)["looks"] == looks


@pytest.mark.parametrize("key", [key for key in MISTAKES if isinstance(key, tuple)], ids="/".join)
def test_every_mistake_has_its_text(key):
    report, criterion, looks, *kind = key
    assert criterion in CRITERIA[report]
    facts = {
        "n": 5,
        "k": 4,
        "pieces": 3,
        "sizes": [2, 2, 1],
        "mode": "no_grad",
        "bad": 2,
        "what": "int",
        "expected": 1,
        "shown": 2,
        "kind": kind[0] if kind else None,
    }
    problem = diagnosis.problem(
        report, criterion, {"looks": looks, "facts": facts, "got": [], "right": []}
    )
    assert (
        problem["mistake"]
        and "{" not in problem["mistake"]
        and problem["expected"] == 1
        and problem["got"] == 2
    )
    assert problem["mistake"] == MISTAKES[key].format(**facts)


@pytest.mark.parametrize(
    "report, criterion", [(check, name) for check, names in CRITERIA.items() for name in names]
)
def test_what_fits_no_known_mistake_has_a_text(report, criterion):
    assert (report, criterion, "other") in MISTAKES


def test_an_exception_tells_its_remedy():
    text = diagnosis.describe_error(
        "gather", RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    )
    assert text.startswith("gather raised RuntimeError") and "stack such numbers" in text
    assert "\n" not in diagnosis.describe_error("gather", ValueError("strange"))


def test_a_part_that_is_not_written_is_named(capsys):
    def scatter(value, devices):
        raise NotImplementedError

    def data_parallel(module, inputs, kwargs, devices, output_device):
        return scatter(inputs, devices)

    forward(data_parallel)
    assert "scatter is not written yet" in capsys.readouterr().out


def test_threads_that_end_by_an_exception_print_nothing_and_the_hook_comes_back(capfd):
    import threading

    def raises():
        raise ValueError("in a thread")

    before = threading.excepthook
    with threads.silent_threads():
        thread = threading.Thread(target=raises)
        thread.start()
        thread.join()
    assert capfd.readouterr().err == "" and threading.excepthook is before


def test_a_tied_weight_has_a_gradient_from_both_of_its_places():
    import random

    module = replicas.network(random.Random(3))
    x = torch.randn(4, module.first.in_features, dtype=torch.float64)
    whole, half = replicas.alone(module, [(0, x)]), replicas.alone(module, [(0, x)], untied=True)
    tied = [name for name, _ in replicas.gradients(module) if name.endswith("weight")]
    differ = [
        name
        for (name, a), (_, b) in zip(
            whole, replicas.kept_names(half, [name for name, _ in whole]), strict=True
        )
        if a != b
    ]
    assert len(tied) == 2 and len(differ) == 1 and differ[0] in tied


def test_the_pictures_numbers_stand_beside_it():
    bar = {"scatter": 0.5, "parallel apply": 12.25}
    table = phases_table({"many": {1: bar, 2: bar}, "few": {1: bar}})
    assert table.count("12.75") == 3 and "parallel apply" in table.splitlines()[0]
    text = phases({"many": {1: bar, 2: bar}, "few": {1: bar}}).text
    assert "many" in text and ">12.2<" in text and ">0.5<" not in text and "replicas" in text


def test_every_check_has_a_hint():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())

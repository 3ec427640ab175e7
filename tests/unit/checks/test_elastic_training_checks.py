"""The verdicts of unit 18's checks where mutants do not reach, and that each word has its use."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from manyhands.checks.elastic_training import (
    diagnosis,
    disk_faults,
    global_generators,
    row_diagnosis,
)
from manyhands.checks.elastic_training.disk_faults import Read
from manyhands.checks.elastic_training.messages import CRITERIA, HINTS, MISTAKES

SOURCES = "".join(
    path.read_text()
    for path in Path(diagnosis.__file__).parent.glob("*.py")
    if path.name != "messages.py"
)


def test_each_mistake_is_said_somewhere():
    # said by the name of the part
    parts = {"weights", "momentum", "rate", "seen", "torch", "noise", "python"}
    assert [name for name in MISTAKES if name not in parts and f'"{name}"' not in SOURCES] == []


def test_there_are_two_steps_of_a_hint_for_each_check():
    assert {name.removeprefix("18-") for name in HINTS} == set(CRITERIA)
    assert all(len(steps) == 2 for steps in HINTS.values())


@pytest.mark.parametrize(
    "read, step, word",
    [
        (Read(-3, error="it raised"), 5, "it raised"),
        (Read(-2), -1, "return None"),
        (Read(-2), 5, "the pair"),
        (Read(3, 1.0), -1, "return None"),
        (Read(-1), 5, "was whole"),
        (Read(9, 1.0), 10, "compare numbers"),
        (Read(4, 1.0), 10, "compare numbers"),
        (Read(10, 1.0), 11, "is newer"),
        (Read(12, 1.0), 11, "not whole"),
        (Read(5, 2.0), 5, "not the one that was saved"),
    ],
)
def test_what_latest_gave(read, step, word):
    assert word in diagnosis.read_problem(read, step, 1.0)["mistake"]


def test_what_latest_should_give():
    assert diagnosis.read_problem(Read(-1), -1, 0.0) is None
    assert diagnosis.read_problem(Read(5, 1.0), 5, 1.0) is None


def test_the_order_of_syncs_and_renames():
    file, folder, renamed, everything = (
        ("sync", 1, 50),
        ("sync", 9, -1),
        ("rename", [(1, 50)], 9, False),
        ("sync all",),
    )
    for events in (
        [file, renamed, folder],
        [everything, renamed, folder],
        [file, renamed, everything],
        [file, renamed, ("sync", 8, -1), folder],
    ):
        assert diagnosis.power_problem(events, {1: 50}) is None
    for events, sizes, word in (
        ([], {}, "Nothing was renamed"),
        ([renamed, file, folder], {1: 50}, "asked for the bytes"),
        ([file, renamed], {1: 50}, "its name may not"),
        ([("sync", 1, 40), renamed, folder], {1: 50}, "asked for the bytes"),
        ([file, renamed, folder], {1: 70}, "50 of 70"),
        ([file, ("rename", [(1, 50)], 9, True), folder], {1: 50}, "in the folder itself"),
        ([file, folder, renamed], {1: 50}, "its name may not"),
        ([file, renamed, ("sync", 8, -1)], {1: 50}, "not the one that the file was renamed into"),
    ):
        assert word in diagnosis.power_problem(events, sizes)["mistake"]


def test_the_commits_that_were_due():
    right = {"commits": [0, 5, 10], "steps": 12, "events": []}

    def problem_of(commits):
        record = {"commits": commits, "steps": 12, "events": []}
        return diagnosis.commits_problem(record, right)

    assert problem_of([0, 5, 10, 12]) is None, "one behind the last step may be there"
    for commits, word in (
        ([5, 10], "at the start"),
        ([0, 5], "2 commits, although 3 were due"),
        ([0, 5, 10, 11], "4 commits, although only 3"),
        ([0, 6, 10], "after 6 steps instead of 5"),
    ):
        assert word in problem_of(commits)["mistake"]


def _judged(batches, images):
    return row_diagnosis.epochs_problem(row_diagnosis.counts_of(batches, images), images)


def test_epochs_of_rows():
    assert _judged([[3, 1], [0, 2], [2, 0], [1, 3]], 4) is None
    assert _judged([[3, 1, 0], [2, 2, 0], [1, 3]], 4) is None, (
        "a row may come in both epochs of one batch"
    )
    assert _judged([[3, 1, 0], [2, 2, 0, 1, 3, 1, 0], [3, 2]], 4) is None, (
        "a batch may lie in three epochs"
    )
    assert "never" in _judged([[3, 1], [1, 2], [2, 0], [0, 3]], 4)["mistake"]
    assert "border" in _judged([[3, 1], [0, 2], [2, 0], [2, 0]], 4)["mistake"]
    assert "border" in _judged([[3, 1, 0], [2, 2, 0], [3, 2]], 4)["mistake"]


def _orders(order, images=60):
    return row_diagnosis.orders_problem(
        {
            (seed, epoch): [int(row) for row in order(seed, epoch, images)]
            for seed in (5, 6, 4, 0)
            for epoch in (0, 1)
        },
        images,
    )


def _shuffled(*numbers):
    return np.random.default_rng(numbers)


@pytest.mark.parametrize(
    "order, word",
    [
        (lambda seed, epoch, n: [(i + seed + epoch) % n for i in range(n)], "order of the file"),
        (
            lambda seed, epoch, n: [(7 * i + seed + epoch) % n for i in range(n)],
            "order of the file",
        ),
        (
            lambda seed, epoch, n: np.roll(_shuffled(seed).permutation(n), 5 * epoch),
            "turns one into the other",
        ),
        (
            lambda seed, epoch, n: _shuffled(seed).permutation(n)[:: 1 - 2 * epoch],
            "turns one into the other",
        ),
        (lambda seed, epoch, n: _shuffled(epoch).permutation(n), "With a different seed"),
        (lambda seed, epoch, n: _shuffled(seed + epoch).permutation(n), "as with seed + epoch"),
        (lambda seed, epoch, n: _shuffled(seed ^ epoch).permutation(n), "as with seed + epoch"),
    ],
)
def test_orders_that_are_not_shuffled_or_come_twice(order, word):
    assert word in _orders(order)["mistake"]


@pytest.mark.parametrize("turn", range(40))
def test_shuffled_orders_pass(turn):
    assert _orders(lambda seed, epoch, n: _shuffled(turn, seed, epoch).permutation(n)) is None


def test_a_global_generator_that_was_used_is_named_and_set_back():
    import random

    import torch

    for draw, name in (
        (random.random, "Python's random"),
        (np.random.rand, "NumPy"),
        (lambda: torch.rand(1), "torch"),
    ):
        before, wanted = global_generators.states(), draw()
        assert global_generators.changed(before) == name
        assert draw() == wanted
    assert global_generators.changed(global_generators.states()) is None


def test_pieces_and_reads():
    pieces = np.array([[1, 2, 3], [4, 5, 0]], float)
    case = (5, 2, 3, 1)  # the numbers at 2 and 3
    assert diagnosis.reads_problem(case, [(0, 2, 3), (1, 0, 1)], pieces) == (None, [3, 4])
    assert diagnosis.least_problem(case, [(0, 2, 3), (1, 0, 1)]) is None
    assert (
        "nothing in it"
        in diagnosis.least_problem(case, [(0, 2, 3), (1, 0, 1), (1, 1, 1)])["mistake"]
    )
    assert "reads 3 numbers" in diagnosis.least_problem(case, [(0, 1, 3), (1, 0, 1)])["mistake"]
    assert (
        "asked 2 times" in diagnosis.least_problem((5, 2, 2, 0), [(0, 0, 1), (0, 1, 3)])["mistake"]
    )
    assert (
        "With 5 numbers in 2 pieces, rank 1 of 3 does not get the numbers 2 to 3"
        in diagnosis.least_problem(case, [(0, 2, 3)])["mistake"]
    )
    assert (
        "has no numbers" in diagnosis.reads_problem((5, 2, 4, 3), [(0, 0, 1)], pieces)[0]["mistake"]
    )
    assert diagnosis.wanted(5, 4, 3) == (5, 5), "the last rank may have nothing"
    assert diagnosis.triples("no") is None and diagnosis.triples([(1, 2)]) is None


def test_the_folder_of_a_save_is_seen(tmp_path):
    (tmp_path / "step").mkdir()
    (tmp_path / "step" / "state").write_bytes(bytes(500))
    assert disk_faults.largest(tmp_path) == 500
    assert [path.name for path in disk_faults.files(tmp_path)] == ["state"]


def test_the_words_fit_their_criteria():
    fields = {name: set(re.findall(r"\{(\w+)\}", text)) for name, text in MISTAKES.items()}
    assert all(field.isidentifier() for names in fields.values() for field in names)
    assert not {"expected", "got"} & {field for names in fields.values() for field in names}, (
        "those are lines of their own"
    )
    assert set(inspect.signature(diagnosis.say).parameters) >= {"mistake", "expected", "got"}

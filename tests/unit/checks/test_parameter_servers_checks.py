"""Unit 08's checks: placements and staleness are judged right.

Mistakes have looks that no others have, and the solution passes under many seeds (threads stand for
ranks).
"""

import queue
import re
import threading
from math import prod
from pathlib import Path
from typing import NamedTuple

import pytest

from manyhands.checks.parameter_servers import diagnosis
from manyhands.checks.parameter_servers.messages import CRITERIA, HINTS, MISTAKES

torch = pytest.importorskip("torch")

from manyhands.checks.parameter_servers import ranks, train_ranks  # noqa: E402

SOURCE = Path(__file__).parents[3] / "sources" / "labs" / "08_parameter_servers.py"
SEEDS = (0, 1, 2, 4711, 1234)


class Piece(NamedTuple):
    variable: int
    start: int
    stop: int
    server: int


# ------------------------------------------------------------------ threads in the place of ranks


class Threads:
    """Five ranks as threads, with the four calls of torch.distributed that unit 08 needs."""

    def __init__(self):
        self.here, self.boxes = (
            threading.local(),
            {(a, b): queue.Queue() for a in range(5) for b in range(5)},
        )

    def get_rank(self):
        return self.here.rank

    def send(self, tensor, dst):
        self.boxes[self.here.rank, dst].put(tensor.clone())

    def recv(self, tensor, src):
        came = self.boxes[src, self.here.rank].get(timeout=5)
        assert came.shape == tensor.shape and came.dtype == tensor.dtype
        tensor.copy_(came)

    def run(self, experiment, *args):
        """The answers of all ranks."""
        answers, errors = [None] * 5, []

        def rank_body(rank):
            self.here.rank = rank
            try:
                answers[rank] = experiment(*args)
            except Exception as error:  # noqa: BLE001 - told below
                errors.append(error)

        threads = [threading.Thread(target=rank_body, args=(rank,)) for rank in range(5)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        if errors:
            raise errors[0]
        return answers


def solution():
    """The source of the lab's answers."""
    cells = SOURCE.read_text().split("\n# %% ")
    return "\n".join(
        re.sub(r"^.*\n", "", cell, count=1)
        for cell in cells
        if 'tags=["solution"]' in cell.split("\n")[0]
    )


@pytest.fixture
def world(monkeypatch):
    """`world(experiment, *args, cell=...)` runs an experiment with the solution.

    `cell` replaces some of the solution's functions.
    """
    threads = Threads()

    def run(experiment, *args, cell=""):
        names = {"torch": torch, "dist": threads, "prod": prod, "Piece": Piece}
        exec(solution() + "\n" + cell, names)
        for module in (ranks, train_ranks):
            monkeypatch.setattr(module, "learners", names.get)
        monkeypatch.setattr(ranks, "dist", threads)
        return threads.run(experiment, *args)

    return run


def looks(answers, topic):
    return {case["looks"] for cases in answers for case in cases if case.get("topic") == topic} - {
        None,
        "",
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_passes_under_any_seed(world, seed):
    for case in world(ranks.place, "place", seed)[0]:
        assert (
            diagnosis.cover_problem(case)
            is diagnosis.limit_problem(case)
            is diagnosis.pieces_problem(case)
            is None
        )
    assert not looks(world(ranks.exchange, "push", "take", "give", "pull", seed), "push")
    assert not looks(answers := world(ranks.step, "synchronous_step", seed), "step") and not looks(
        answers, "answer"
    )
    answers = world(train_ranks.asynchronous, "asynchronous", seed)
    assert not looks(answers, "asynchronous")
    assert not any(
        diagnosis.stale_problem(0, case) for cases in answers for case in cases if "wanted" in case
    )
    assert not any(
        map(diagnosis.servers_problem, world(train_ranks.servers, "fewest_servers", seed)[0])
    )


class NoLedger:
    """Threads send nothing that a ledger could count."""

    bytes_sent = bytes_received = 0
    __enter__ = __exit__ = lambda self, *_: self


ROUND = """
def place(shapes, workers, servers, link_bytes):
    return [Piece(variable, 0, shape[0], (variable + 1) % servers) for variable, shape in enumerate(shapes)]
"""
DECAY_TWICE = """
once = synchronous_step
def synchronous_step(mine, workers, rate, decay):
    once(mine, workers, rate, 2 * decay)
"""


@pytest.mark.parametrize("cell, changed", [("", False), (ROUND, False), (DECAY_TWICE, True)])
def test_the_weights_of_a_training_do_not_depend_on_who_keeps_them(
    world, monkeypatch, cell, changed
):
    monkeypatch.setattr("manyhands.ledger.Ledger", NoLedger)

    def evidence(cell):
        answers = world(
            train_ranks.train, "place", "push", "pull", "synchronous_step", 5, cell=cell
        )
        assert bool(looks(answers, "train")) is (changed and cell != "")
        return [
            number
            for cases in answers
            for case in cases
            if not case["server"]
            for number in case["got"]
        ]

    assert (evidence(cell) == pytest.approx(evidence(""), abs=1e-9)) is not changed


def test_nothing_is_trained_with_rows_that_nobody_keeps(world):
    cell = "\ndef place(shapes, workers, servers, link_bytes):\n    return [Piece(0, 0, 1, 0)]\n"
    answers = world(train_ranks.train, "place", "push", "pull", "synchronous_step", 5, cell=cell)
    assert all(
        case["bytes"] is None and diagnosis.link_problem(case)["mistake"] == MISTAKES["place first"]
        for cases in answers
        for case in cases
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_servers_and_workers_change_places_and_every_server_keeps_something(seed):
    layouts = ranks.layouts(seed)
    assert [len(servers) for servers, _ in layouts] == [1, 2, 3]
    assert all(sorted(servers + workers) == [0, 1, 2, 3, 4] for servers, workers in layouts)
    for servers in (1, 2, 3):
        for shapes in (
            [(7, 6), (7,), (8, 4)],
            [(12, 3), (12,), (13, 2)],
            [(6, 3), (3,)],
            [(9, 2), (2,)],
        ):
            assert {piece[3] for piece in diagnosis.placed(shapes, servers)} == set(range(servers))


# ------------------------------------------------------------------ what a synchronous step looks
# like

STEP = """
def synchronous_step(mine, workers, rate, decay):
    sums, rows, pushes = [torch.zeros_like(w) for w in mine], 0, []
    for worker in workers:
        gradients, count = take(mine, worker)
        rows += count
        for total, gradient in zip(sums, gradients):
            total += gradient
    for w, total in zip(mine, sums):
        w -= UPDATE
    for worker in workers:
        give(mine, worker)
"""


@pytest.mark.parametrize(
    "update, name",
    [
        ("rate * (total + decay * w)", "not divided"),
        ("rate * (total / len(workers) + decay * w)", "by workers"),
        ("rate * total / rows", "no decay"),
        ("rate * (total / rows + len(workers) * decay * w)", "decay on each"),
        ("rate * (total + decay * w) / rows", "decay by rows"),
        ("0", "unchanged"),
        ("float('nan')", "not finite"),
    ],
)
def test_a_wrong_update_is_named(world, update, name):
    answers = world(ranks.step, "synchronous_step", 3, cell=STEP.replace("UPDATE", update))
    first = [
        case for cases in answers for case in cases if case["topic"] == "step" and case["step"] == 0
    ]
    assert {case["looks"] for case in first} == {name}
    problem = diagnosis.value_problem(0, first[0], "step")
    assert problem["mistake"] == MISTAKES["step", name].format(
        p=first[0]["workers"], step=1, number=""
    )


def test_sums_that_are_kept_are_named(world):
    cell = (
        STEP.replace("UPDATE", "rate * (total / rows + decay * w)")
        .replace(
            "sums, rows, pushes = [torch.zeros_like(w) for w in mine], 0, []",
            """
    state = kept.setdefault(dist.get_rank(), {}).setdefault(len(workers), {"sums": [torch.zeros_like(w) for w in mine], "rows": 0})
    sums, rows = state["sums"], state["rows"]""",
        )
        .replace("        rows += count", "        rows += count\n        state['rows'] = rows")
        + "\nkept = {}\n"
    )
    answers = world(ranks.step, "synchronous_step", 3, cell=cell)
    assert looks(answers, "step") == {"kept"}


# ------------------------------------------------------------------ placements


def placement(pieces, shapes=((4, 10), (6,)), workers=3, servers=2, link=900):
    return {
        "shapes": list(shapes),
        "workers": workers,
        "servers": servers,
        "link": link,
        "pieces": pieces,
    }


RIGHT = [[0, 0, 3, 0], [0, 3, 4, 1], [1, 0, 6, 1]]


@pytest.mark.parametrize(
    "pieces, text",
    [
        (RIGHT, None),
        (None, "must return a list of pieces"),
        (RIGHT[:2], "6 rows of variable 1 are on no server"),
        ([*RIGHT, [0, 0, 1, 1]], "in two pieces"),
        ([*RIGHT, [1, 5, 7, 0]], "lies outside"),
        ([*RIGHT, [1, 0, 1, 2]], "0 to 1"),
        ([*RIGHT, [7, 0, 1, 0]], "lies outside"),
    ],
)
def test_every_row_is_kept_once(pieces, text):
    case, right = placement(pieces), placement(RIGHT)
    problem = diagnosis.cover_problem(case)
    assert problem is None if text is None else text in problem["mistake"]
    assert (diagnosis.cover_evidence(case) == diagnosis.cover_evidence(right)) is (text is None)


@pytest.mark.parametrize(
    "pieces, link, text",
    [
        (RIGHT, 720, None),
        (RIGHT, 719, "a row too many"),
        (RIGHT, 360, "were 4 counted"),
        ([[0, 0, 4, 0], [1, 0, 6, 1]], 900, "assigned in turn"),
        ([[0, 0, 4, 1], [1, 0, 6, 0]], 900, "must be cut"),
        ([[0, 0, 2, 0], [0, 2, 4, 1], [1, 0, 3, 0], [1, 3, 6, 1]], 500, "equal parts"),
        ([[0, 0, 4, 0], [1, 0, 6, 0]], 900, "no more than 900"),
        ([[0, 0, 4, 0], [1, 0, 6, 0]], 300, "counted as one"),
        ([], 900, "some rows are on no server"),
        (None, 900, "some rows are on no server"),
    ],
)
def test_bytes_of_a_link(pieces, link, text):
    case, right = placement(pieces, link=link), placement(RIGHT, link=link)
    problem = diagnosis.limit_problem(case)
    assert problem is None if text is None else text in problem["mistake"]
    if link >= 720:
        assert (diagnosis.limit_evidence(case) == diagnosis.limit_evidence(right)) is (text is None)


def test_neighbours_belong_together():
    assert diagnosis.pieces_problem(placement(RIGHT)) is None
    case = placement([[0, 0, 1, 0], [0, 1, 4, 0], [1, 0, 6, 1]])
    assert "separate message" in diagnosis.pieces_problem(case)[
        "mistake"
    ] and diagnosis.pieces_evidence(case) != diagnosis.pieces_evidence(placement(RIGHT))
    assert diagnosis.pieces_problem(placement(None))["mistake"] == MISTAKES["no pieces"]


@pytest.mark.parametrize(
    "answer, pieces",
    [
        ([(0, 1, 2, 3)], [[0, 1, 2, 3]]),
        ([Piece(0, 1, 2, 3)], [[0, 1, 2, 3]]),
        ([(0, 1, 2)], None),
        (None, None),
        (3, None),
        ([("a", 1, 2, 3)], None),
    ],
)
def test_pieces_as_plain_numbers(answer, pieces):
    assert ranks.plain(answer) == pieces


# ------------------------------------------------------------------ staleness, servers, links


def test_staleness_of_a_schedule():
    assert diagnosis.staleness([1, 2, 1, 1, 3, 2]) == [0, 1, 1, 0, 4, 3]
    assert (
        diagnosis.staleness([1, 2, 3] * 3)[3:] == [2] * 6
    )  # in turn: as stale as there are others


@pytest.mark.parametrize(
    "got, name",
    [
        ([0, 1, 1, 0], None),
        ([1, 2, 2, 1], "one more"),
        ([0, 1, 2, 3], "versions"),
        ([1, 2, 3, 4], "versions"),
        ([0, 1, 2, 1], "between"),
        (None, "no list"),
        ([0, 0, 0, 0], "other"),
    ],
)
def test_a_wrong_staleness_is_named(got, name):
    schedule = [1, 2, 1, 1]
    case = {
        "stale": got,
        "wanted": diagnosis.staleness(schedule),
        "between": diagnosis.between(schedule),
        "schedule": schedule,
    }
    problem = diagnosis.stale_problem(0, case)
    assert (
        problem is None
        if name is None
        else problem["mistake"] == MISTAKES["stale", name].format(schedule=schedule)
    )


@pytest.mark.parametrize(
    "got, right, name",
    [
        (3, 3, None),
        (None, None, None),
        (2, 3, "rounded down"),
        (9, None, "own link"),
        (4, None, "beyond"),
        (7, 3, "other"),
        ("not a number", 3, "other"),
    ],
)
def test_a_wrong_number_of_servers_is_named(got, right, name):
    case = {
        "workers": 8,
        "limit_s": 0.1,
        "got": got,
        "right": right,
        "wrong": {"own link": 9} | ({"rounded down": 2} if right else {}),
    }
    problem = diagnosis.servers_problem(case)
    assert (
        problem is None
        if name is None
        else problem["mistake"] == MISTAKES["servers", name].format(workers=8, limit_s=0.1)
    )


def test_the_link_of_a_server():
    def answer(sent, allowed=1000):
        return {"rank": 4, "workers": 3, "bytes": sent, "allowed": allowed}

    assert diagnosis.link_problem(answer(1000)) is diagnosis.link_problem(answer(0)) is None
    assert (
        diagnosis.link_problem(answer(1001))["rank"] == 4
        and diagnosis.link_problem(answer(None))["mistake"] == MISTAKES["place first"]
    )
    assert (
        diagnosis.link_evidence(answer(10))
        == diagnosis.link_evidence(answer(1000))
        != diagnosis.link_evidence(answer(1001))
    )


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())


# ------------------------------------------------------------------ who answers too early, who
# follows a wrong update, TensorFlow's servers

IN_TURN = """
def synchronous_step(mine, workers, rate, decay):
    for worker in workers:
        gradients, count = take(mine, worker)
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w)
        give(mine, worker)
"""


@pytest.mark.parametrize(
    "cell, update, answer",
    [
        (IN_TURN, "one by one", "asynchronous"),
        (STEP.replace("UPDATE", "rate * (total + decay * w)"), "not divided", "as kept"),
        (STEP.replace("UPDATE", "rate * (total / rows - decay * w)"), "other", "as kept"),
    ],
)
def test_an_answer_is_blamed_only_for_what_is_its_own(world, cell, update, answer):
    first = [
        case
        for cases in diagnosis.with_what_is_kept(
            world(ranks.step, "synchronous_step", 3, cell=cell)
        )
        for case in cases
        if case["step"] == 0
    ]
    assert {case["looks"] for case in first if case["topic"] == "step"} == {update}
    telling = next(
        case for case in first if case["topic"] == "answer" and case["looks"].startswith(answer)
    )
    assert "{" not in diagnosis.value_problem(0, telling, "answer")["mistake"]


@pytest.mark.parametrize(
    "changed, places, weights",
    [
        ({}, None, None),
        ({"where": ""}, "Return the tf.Variable", None),
        (
            {"where": "/job:chief/device:CPU:0", "on a server": False},
            "inside strategy.scope()",
            None,
        ),
        ({"scheduled": 3}, "Of 8 gradients, 3", None),
        ({"looks": "one by one"}, None, "after each gradient"),
        ({"looks": "other"}, None, "only return gradients"),
    ],
)
def test_a_wrong_training_on_tensorflows_servers_is_named(changed, places, weights):
    case = {
        "where": "/job:ps/device:CPU:0",
        "on a server": True,
        "scheduled": 8,
        "wanted": 8,
        "looks": None,
        "got": [1.0],
        "right": [2.0],
        **changed,
    }
    for problem, says in (
        (diagnosis.places_problem(case), places),
        (diagnosis.strategy_problem(case), weights),
    ):
        assert problem is None if says is None else says in problem["mistake"]


def test_a_limit_that_is_just_reached_and_as_many_servers_as_workers_are_asked(world):
    less = """
def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    return next((s for s in range(1, workers OP) if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, s) SIGN limit_s), None)
"""
    for op, sign, name in (("+ 1", "<", "less than"), ("", "<=", "all of them")):
        cases = world(
            train_ranks.servers,
            "fewest_servers",
            7,
            cell=less.replace("OP", op).replace("SIGN", sign),
        )[0]
        texts = [problem["mistake"] for problem in map(diagnosis.servers_problem, cases) if problem]
        assert texts and texts[0].startswith(MISTAKES["servers", name].split("{")[0])


def test_an_endless_loop_is_told_as_one():
    from types import SimpleNamespace

    from manyhands.checks.on_ranks import RankReport

    fault = SimpleNamespace(
        kind="limit",
        text="TIME LIMIT: the cell has run for more than 60 s.\nrank 0 computes at line 4",
        culprits=[],
        differs="",
    )
    assert "if no number of servers is enough, the answer is None" in RankReport(
        "servers", None, CRITERIA, MISTAKES
    )._summarise_fault(fault, None)

"""The pictures in the cards of failed criteria.

The tests look at what they say without the drawing, how large they become, and where they are not.
"""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from test_card import Words, luminance

from manyhands.checks import Report, by_rank
from manyhands.checks import report as report_module

CRITERIA = {"rows": {"cover": (2, "each row is on one rank"), "even": (1, "the shards are even")}}
LARGEST = 16_000  # letters of HTML


def cells(drawn):
    """The words of each line of the table."""
    table = ElementTree.fromstring(drawn.html()).find("table")
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def failed(drawn):
    made = Report("rows", CRITERIA)
    made.judge("cover", [{"expected": 1, "got": 2, "mistake": "wrong", "picture": drawn}], [1.0])
    made.judge("even", [None], [1.0])
    return made


def test_the_numbers_by_rank_are_words_and_a_sign_says_which_are_wrong():
    drawn = by_rank.numbers("rows", [11, 11, 10], [11, 10, 11], ranks=[0, 2, 3])
    assert cells(drawn) == [
        ["rank", "expected", "got", "▬ got, ┃ expected"],
        ["0", "11", "✓ 11", ""],
        ["2", "11", "✗ 10", ""],
        ["3", "10", "✗ 11", ""],
    ]
    assert 'aria-hidden="true"' in drawn.html() and "<caption" in drawn.html()
    assert cells(by_rank.numbers("bytes", 1000, [900, 2000], who="server", at_most=True))[1:] == [
        ["0", "1,000", "✓ 900", ""],
        ["1", "1,000", "✗ 2,000", ""],
    ]
    close = cells(by_rank.numbers("weight", 0.5, [0.5, 0.5 + 1e-8]))
    assert close[2][1:3] == ["0.5", "✗ 0.50000001"], "what differs reads differently"


def test_which_rows_a_rank_takes():
    drawn = by_rank.rows(6, [[0, 1], [2, 3], [4, 5]], [[0, 1, 2], [2, 3], []])
    assert [row[1:3] for row in cells(drawn)[1:]] == [
        ["2 rows: 0-1", "✗ 3 rows: 0-2"],
        ["2 rows: 2-3", "✓ 2 rows: 2-3"],
        ["2 rows: 4-5", "✗ no rows"],
    ]
    drawn = by_rank.samples(6, [[0, 1], [1, 3]], "pipeline")
    assert [[row[0], row[2]] for row in cells(drawn)[1:]] == [
        ["0", "✗ 2 samples: 0-1"],
        ["1", "✗ 2 samples: 1, 3"],
        ["none", "✗ 3 samples: 2, 4-5"],
    ]


def test_a_number_near_zero_is_right_to_the_tolerance_of_the_verdict():
    assert [
        row[2][0] for row in cells(by_rank.numbers("weight", 0.0, [1e-7, 0.5], within=1e-5))[1:]
    ] == ["✓", "✗"]
    assert len(cells(by_rank.numbers("rows", 3, [10**299, 3]))[1][2]) <= by_rank.LONGEST + 2


def test_there_is_no_picture_where_nothing_differs():
    assert (
        by_rank.numbers("rows", [3, 3], [3, 3]) is None
        and by_rank.numbers("bytes", 10, [10, 8], at_most=True) is None
    )
    assert (
        by_rank.numbers("bytes", 100, [101, 99], within=0.02)
        is by_rank.numbers("rows", [1, 2], [1])
        is None
    )
    assert (
        by_rank.rows(4, [[0, 1], [2, 3]], [[1, 0], [2, 3]]) is None
        and by_rank.samples(2, [[1], [0]]) is None
    )
    assert by_rank.numbers("rows", 1, []) is None


@pytest.mark.parametrize(
    "got",
    [
        [None, 3],
        [float("nan"), 3],
        [float("inf"), -float("inf")],
        ["<script>", [1]],
        [True, object()],
        [10**400, 0],
        [-5, 3.5],
        [1e308, -1e308],
        [0, 0],
        [np.float32(3), np.int64(2)],
    ],
    ids=range(10),
)
@pytest.mark.parametrize("expected", [3, 0, -2.5, None])
def test_whatever_a_learner_returns_can_be_drawn(got, expected):
    drawn = by_rank.numbers("rows", expected, got)
    if drawn:
        ElementTree.fromstring(drawn.html())
        assert not re.search('="[^"]*(nan|inf)', drawn.html()) and "<script" not in drawn.html()


def test_its_size_is_bounded_and_it_shows_the_ranks_that_are_wrong():
    got = [[row for row in range(40_000) if row % 1000 == rank] for rank in range(1000)]
    many = [
        by_rank.numbers("rows", 10, [10] * 990 + [7] * 10),
        by_rank.samples(39_000, [[*rank, 1] for rank in got]),
        by_rank.rows(40_000, [list(range(rank * 40, rank * 40 + 40)) for rank in range(1000)], got),
    ]
    for drawn in many:
        assert (
            len(drawn.html()) < LARGEST * by_rank.MOST_RANKS / 12 * 3
            and "more</small>" in drawn.html()
        )
        assert len(cells(drawn)) == by_rank.MOST_RANKS + 1
    assert [row[0] for row in cells(many[0])[-10:]] == [str(rank) for rank in range(990, 1000)]


def test_it_is_in_the_card_alone():
    drawn = by_rank.numbers("rows", [2, 2], [3, 1])
    with_it, without = failed(drawn), failed(None)
    assert drawn.html() in with_it.html() and Words(with_it.html()).open == []
    assert with_it.lines() == without.lines() and with_it.record == without.record


def test_a_build_and_a_grader_see_nothing_of_it(monkeypatch, capsys):
    monkeypatch.setenv("MANYHANDS_QUIET", "1")
    monkeypatch.setenv("MANYHANDS_RECORD", "1")
    published = []
    monkeypatch.setattr(report_module, "_publish", published.append)
    monkeypatch.setattr(report_module, "in_notebook", lambda: True)
    failed(by_rank.numbers("rows", [2, 2], [3, 1])).show()
    assert "svg" not in capsys.readouterr().out + str(published) and len(published) == 1


@pytest.mark.parametrize("state", by_rank.FILL)
@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_its_bars_can_be_told_from_a_light_and_a_dark_page(state, page):
    dark, light = sorted(map(luminance, (by_rank.FILL[state], page)))
    assert (light + 0.05) / (dark + 0.05) >= 3


def traffic(sent, messages):
    from manyhands.checks.collectives.diagnosis import Traffic

    p = len(sent)
    return Traffic(
        p, 1000, 4, None, list(range(p)), messages, sent, [[(me + 1) % p] for me in range(p)], 4, []
    )


def problems():
    """A wrong answer to each criterion that has a picture."""
    from manyhands.checks.collectives import diagnosis as collectives
    from manyhands.checks.data_parallel import diagnosis as by_hand
    from manyhands.checks.ddp import diagnosis as ddp
    from manyhands.checks.ddp import sampler_criteria
    from manyhands.checks.elastic_training import row_diagnosis, second_life
    from manyhands.checks.horovod import diagnosis as horovod
    from manyhands.checks.mirrored_strategy.diagnosis import Epoch
    from manyhands.checks.multiworker import input_diagnosis
    from manyhands.checks.parameter_servers import diagnosis as servers

    rows = {"n": 7, "world_size": 2, "odd": None, "borrowed": None, "got": [[0, 1, 2], [4, 5, 6]]}
    step = {"members": [0, 2], "frozen": True, "beyond": [], "looks": "other", "right": [1.0, 2.0]}
    group = [{**step, "got": [1.0, 2.5]}, {**step, "got": [1.0, 2.0]}]
    state = {
        "same objects": True,
        "same flags": True,
        "names": ["a.weight"],
        "parameters": 1,
        "frozen": [False],
        "saved": [],
        "same memory": [True],
    }
    ranks = {
        0: {**state, "before": [[1.0]], "after": [[1.0]]},
        3: {**state, "before": [[2.0]], "after": [[2.0]]},
    }
    landed = {
        rank: {"local": [[1.0, 2.0 + rank]], "got": [[1.0, 2.0]], "shapes": [[2]]}
        for rank in (0, 1)
    }
    epoch = Epoch(
        np.ones((8, 1)), np.ones(8), np.zeros(1), 2, 4, 0.1, lambda *_: 0.0, lambda *_: 0.0
    )
    lives = [([(None, [0], [], np.zeros(3)), (None, [0], [], np.ones(3))], 1)]
    return {
        "01 cover": by_hand.cover_problem(rows),
        "01 even": by_hand.even_problem({**rows, "got": [[0, 1, 2], [3, 4, 5, 6]]}),
        "01 weights": by_hand.weights_problem(0, group[0], (), group),
        "02 shards": epoch.shards_problem([6, 2]),
        "04 tree": collectives.tree_problem(traffic([4000] * 5, [4, 0, 0, 0, 0])),
        "04 ring": collectives.ring_problem(traffic([4000] * 5, [8, 8, 8, 9, 8]), 2),
        "04 bytes": collectives.bytes_problem(traffic([32_000, 0, 0, 0, 0], [8] * 5), 2),
        "04 halving": collectives.halving_problem(traffic([6000, 6000, 6000, 12_000], [4] * 4)),
        "06 state": ddp.state_problem(ranks, True),
        "06 land": ddp.land_problem(landed),
        "06 padding": sampler_criteria.padding_problem(
            {"n": 5, "world_size": 2, "epochs": [[[0, 2, 4], [1, 3]]], "lengths": [3, 2]}
        ),
        "07 once": input_diagnosis.once_problem(
            {
                "error": None,
                "n": 6,
                "pipelines": 2,
                "replicas": 2,
                "labels": True,
                "epochs": [[[[0, 1, 2]], [[2, 3, 4]]]],
            }
        ),
        "08 limit": servers.limit_problem(
            {
                "shapes": [(4, 2), (4, 2)],
                "workers": 2,
                "servers": 2,
                "link": 128,
                "pieces": [[0, 0, 4, 0], [1, 0, 4, 0]],
            }
        ),
        "10 loss": horovod.loss_problem(
            1,
            {"losses": [1.0, 3.0], "returned": 3.0, "tensor": False},
            [{"returned": 1.0}, {"returned": 3.0}],
        ),
        "18 shares": row_diagnosis.lengths_problem([5, 2], 7),
        "18 ranks": second_life.ranks_problem([lives[0][0]]),
    }


def test_criteria_with_evidence_by_rank_have_a_picture():
    by_criterion = problems()
    assert {
        name for name, problem in by_criterion.items() if not problem or not problem.get("picture")
    } == set()
    for name, problem in by_criterion.items():
        words = cells(problem["picture"])
        assert any(row[2].startswith("✗") for row in words[1:]), name
        assert len(problem["picture"].html()) < LARGEST, name

"""The report that a check cell makes: its lines and its record.

No value of a learner's can break it.
"""

import json
import math
import subprocess
import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest

from manyhands.checks import Report, hint, seed
from manyhands.checks import hints as hints_module
from manyhands.checks.record import (
    MAX_TEXT,
    MAX_VALUES,
    cut,
    flatten,
    shorten,
    shorten_lines,
    tell_apart,
)
from manyhands.checks.report import Stopped
from manyhands.units import units


def full_report():
    report = Report("average")
    report.criterion(
        "mean", points=2, text="gradients are averaged", passed=True, values=[1.5, 2], atol=1e-5
    )
    report.criterion(
        "bytes",
        points=1,
        text="few bytes",
        passed=False,
        values=[7],
        rank=2,
        expected=3,
        got=7,
        mistake="Send less.\nMuch less.",
    )
    report.blocked("nccl", points=3, text="NCCL works", why="no GPU")
    return report


def test_lines():
    assert "\n".join(full_report().lines()).split("\n") == [
        "PASS 2/2  gradients are averaged",
        "FAIL 0/1  few bytes",
        "          rank:     2",
        "          expected: 3",
        "          got:      7",
        "          mistake:  Send less.",
        "                    Much less.",
        "BLOCKED   NCCL works",
        "          why:      no GPU",
    ]


def test_record_is_plain_json():
    record = json.loads(json.dumps(full_report().record, allow_nan=False))
    assert record["name"] == "average" and [
        criterion["status"] for criterion in record["criteria"]
    ] == [
        "pass",
        "fail",
        "blocked",
    ]
    assert record["criteria"][0] == {
        "name": "mean",
        "text": "gradients are averaged",
        "points": 2,
        "status": "pass",
        "values": [1.5, 2],
        "atol": 1e-5,
        "rtol": 0.0,
        "detail": {},
    }


def test_show_publishes_only_when_asked(monkeypatch, capsys):
    published = []
    monkeypatch.setattr("IPython.display.publish_display_data", published.append)
    monkeypatch.delenv("MANYHANDS_RECORD", raising=False)
    full_report().show()
    assert published == [] and capsys.readouterr().out.startswith("PASS 2/2")
    monkeypatch.setenv("MANYHANDS_RECORD", "1")
    full_report().show()
    assert list(published[0]) == ["application/vnd.manyhands.record+json"]


def test_mistakes_of_a_check_are_refused():
    report = Report("average")
    with pytest.raises(ValueError, match="without values"):
        report.criterion("a", points=1, text="a", passed=True)
    report.criterion("a", points=1, text="a", passed=False)
    with pytest.raises(ValueError, match="twice"):
        report.criterion("a", points=1, text="a", passed=False)


class Awkward:
    def __repr__(self):
        raise RuntimeError

    def tolist(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "value, flat",
    [
        (3, [3]),
        (np.arange(4).reshape(2, 2), [0, 1, 2, 3]),
        ([1.5, [2, (3,)]], [1.5, 2, 3]),
        (np.float32(0.5), [0.5]),
        (math.nan, ["nan"]),
        (-math.inf, ["-inf"]),
        ({"a": 1}, ["a", 1]),
        (True, [True]),
        (None, [None]),
        (2**70, [str(2**70)]),
        (Awkward(), ["<Awkward>"]),
        (len, ["<builtin_function_or_method>"]),
        (1j, ["<complex>"]),
        ([], []),
    ],
)
def test_flatten_takes_anything(value, flat):
    assert flatten(value) == flat
    json.dumps(flatten(value), allow_nan=False)
    assert isinstance(shorten(value), str)


def test_flatten_takes_tensors():
    torch = pytest.importorskip("torch")
    assert flatten([torch.ones(2, requires_grad=True), torch.tensor(3)]) == [1.0, 1.0, 3]


def test_endless_values_are_cut():
    endless = []
    endless.append(endless)
    assert flatten(endless) == ["<list>"]
    assert len(flatten(range(3))) == 1 and len(flatten(list(range(10**5)))) == MAX_VALUES


def test_shorten():
    assert shorten(np.linspace(0, 1, 20)).startswith("[0, 0.0526316") and shorten(
        np.linspace(0, 1, 20)
    ).endswith("...]")
    assert len(shorten("x" * 10_000)) < 500 and shorten(1 / 3) == "0.333333"


LONG = [float(k) for k in range(9)]


@pytest.mark.parametrize(
    "expected, got, ends",
    [
        ([1.0, 2.0], [1.0, 3.0], ("[1, 2]", "[1, 3]")),
        (LONG, [*LONG[:7], 7.5, 8.0], ("5, ...]; [7]: 7", "5, ...]; [7]: 7.5")),
        (LONG, LONG[:8], ("5, ...]; [8]: 8", "5, ...]; [8]: nothing more")),
        ([LONG, LONG], [LONG, [*LONG[:8], 1.0]], ("...]]; [1][8]: 8", "...]]; [1][8]: 1")),
        ([0.1], [0.10000001], ("[0.1]; [0]: 0.1", "[0.1]; [0]: 0.10000001")),
        (LONG, [*LONG[:5], 5 + 1e-12, 6.0, 7.0, 9.0], ("; [8]: 8", "; [8]: 9")),
        ([[1, 2], [3]], [[], []], ("[[1, 2], [3]]", "[[], []]")),
        (np.arange(9), np.arange(9) * (np.arange(9) < 8), ("; [8]: 8", "; [8]: 0")),
        (
            [["x" * 90] * 6] * 6,
            [["x" * 90] * 6] * 5 + [["x" * 90] * 5 + ["y"]],
            ("[5][5]: " + "x" * 90, "[5][5]: y"),
        ),
        ("some text", "another", ("some text", "another")),
        (1.0, 2.0, ("1", "2")),
        (LONG, None, ("...]", "None")),
        (LONG, LONG, ("...]", "...]")),
    ],
)
def test_a_difference_behind_the_cut_is_shown(expected, got, ends):
    for text, end in zip(tell_apart(expected, got), ends, strict=True):
        assert text.endswith(end) and len(text) <= MAX_TEXT


def test_of_several_lines_none_is_lost_to_a_long_one():
    text = shorten_lines("\n".join(["x" * 1000, "who waits", "the cause"]))
    assert text.endswith("...\nwho waits\nthe cause") and len(text) < MAX_TEXT + 30
    assert shorten_lines("\n" * 100).endswith("...") and shorten_lines("\n" * 100).count("\n") < 10


def test_seed(monkeypatch):
    monkeypatch.delenv("MANYHANDS_SEED", raising=False)
    assert seed() == 0
    monkeypatch.setenv("MANYHANDS_SEED", "17")
    assert seed() == 17


def test_importing_checks_is_cheap():
    code = (
        "import sys, manyhands.checks; print([m for m in ('torch', 'tensorflow', 'numpy', "
        "'IPython', 'ipyparallel') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def some_hints(monkeypatch):
    module = types.ModuleType("manyhands.checks.tiny_unit")
    module.HINTS = {"90-average": "Divide by the world size.\n"}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(
        hints_module,
        "units",
        lambda root: [types.SimpleNamespace(number="90", name="90_tiny_unit")],
    )


def test_failing_report_names_its_hint(some_hints):
    assert full_report().lines()[-1] == 'For help, run: hint("90-average")'


def test_hint_is_printed_and_remembered(some_hints, tmp_path, monkeypatch, capsys):
    (tmp_path / "work" / "90_tiny").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "90_tiny")
    hint("90-average")
    hint("90-average")
    assert capsys.readouterr().out == "Divide by the world size.\n" * 2
    assert json.loads((tmp_path / "work/.manyhands/progress.json").read_text()) == {
        "90_tiny": {"hints": ["90-average"]}
    }
    hint("90-else")
    assert (
        "There is no hint '90-else'. The existing hints are: 90-average." in capsys.readouterr().out
    )


def test_hint_outside_work_leaves_no_file(some_hints, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hint("90-average")
    assert list(tmp_path.iterdir()) == []


def test_unit_without_checks_has_no_hints(capsys):
    assert hints_module.hints_of("77") == {}
    hint("77-average")
    assert "none for that unit" in capsys.readouterr().out


def test_a_hint_has_steps_and_ends_with_the_last(some_hints, monkeypatch, capsys):
    monkeypatch.setattr(hints_module, "_steps_shown", {})
    sys.modules["manyhands.checks.tiny_unit"].HINTS = {
        "90-average": ("What do three ranks add up to?", "Divide by the world size.")
    }
    hint("90-average")
    assert (
        capsys.readouterr().out
        == 'What do three ranks add up to?\nFor more, run hint("90-average") again.\n'
    )
    for _ in range(2):
        hint("90-average")
        assert capsys.readouterr().out == "Divide by the world size.\n"


@pytest.mark.parametrize("number", [unit.number for unit in units(".")])
def test_hints_are_named_after_their_unit(number):
    for name, text in hints_module.hints_of(number).items():
        assert name.startswith(f"{number}-") and all(
            step.strip() for step in hints_module.steps_of(text)
        ), name


CRITERIA = {
    "average": {
        "sum": (1, "the sum is right"),
        "mean": (2, "the mean is right"),
        "rate": (1, "the rate is right"),
    }
}


def test_the_first_problem_counts_and_the_report_is_shown_at_the_end(capsys):
    with Report("average", CRITERIA) as report:
        assert report.judge("sum", [None, {}], [3.0], atol=1e-3)
        assert not report.judge(
            "mean", iter([None, {"mistake": "summed"}, {"mistake": "never looked at"}]), [1.0]
        )
        assert report.judge("rate", [], [0.1])
    assert capsys.readouterr().out.splitlines() == [
        "PASS 1/1  the sum is right",
        "FAIL 0/2  the mean is right",
        "          mistake:  summed",
        "PASS 1/1  the rate is right",
    ]
    assert report.record["criteria"][0]["atol"] == 1e-3


def test_where_a_check_stops_the_criteria_that_it_has_not_judged_fail(capsys):
    with Report("average", CRITERIA) as report:
        report.judge("sum", [], [1.0])
        raise Stopped("rank 2 hangs", rank=2)
    shown = capsys.readouterr().out
    assert shown.count("mistake:  rank 2 hangs") == shown.count("mistake:  The same as above.") == 1
    assert [
        (criterion["name"], criterion["status"], criterion["detail"].get("rank"))
        for criterion in report.criteria
    ] == [
        ("sum", "pass", None),
        ("mean", "fail", "2"),
        ("rate", "fail", "2"),
    ]


def test_where_a_part_stops_only_its_criteria_fail(capsys):
    with Report("average", CRITERIA) as report:
        with report.part("sum", "mean"):
            report.judge("sum", [], [1.0])
            raise Stopped("no mean")
        report.judge("rate", [], [1.0])
    assert [criterion["status"] for criterion in report.criteria] == ["pass", "fail", "pass"]


def test_a_check_that_forgets_a_criterion_is_wrong_and_so_is_one_that_raises(capsys):
    wrong = pytest.raises(ValueError, match="'average' does not judge .'mean', 'rate'.")
    with wrong, Report("average", CRITERIA) as report:
        report.judge("sum", [], [1.0])
    with pytest.raises(ZeroDivisionError), Report("average", CRITERIA):
        raise ZeroDivisionError
    with pytest.raises(TypeError, match="give a list"):
        Report("average", CRITERIA).judge("sum", [], map(float, [1]))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "here, says",
    [
        (True, "but not on the ranks. Put `%%px --setup`"),
        (
            False,
            (
                "rows_of is not written yet.\nThere is no rows_of on the ranks. Run the answer cell"
                " `rows`, .* press Esc and then Y"
            ),
        ),
    ],
)
def test_a_function_that_only_this_kernel_has_is_told(here, says, monkeypatch):
    from manyhands.checks import on_ranks

    cluster = types.SimpleNamespace(
        backend="gloo",
        run=lambda *args, **kwargs: [{"undefined": "rows_of", "unwritten": "rows_of"}],
        holding=lambda reports: nullcontext(),
    )
    monkeypatch.setattr(
        "IPython.get_ipython",
        lambda: types.SimpleNamespace(user_ns={"rows_of": len} if here else {}),
    )
    report = on_ranks.RankReport(
        "rows", cluster, {"rows": {}}, {"unwritten": "{name} is not written yet.", "known": {}}
    )
    with pytest.raises(Stopped, match=says):
        report.on_ranks("data_parallel.ranks", "rows", "rows_of", 1)


def test_a_hint_is_found_without_the_units_number(capsys):
    import manyhands.checks.data_parallel  # noqa: F401

    hint("rows")
    assert "How many rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text, cut_to",
    [
        ("short", "short"),
        ("one two three four", "one two..."),
        ("x" * 30, "x" * 10 + "..."),
        ("", ""),
    ],
)
def test_a_long_text_is_cut_between_words(text, cut_to):
    assert cut(text, 13) == cut_to

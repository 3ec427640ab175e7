"""The clinic's sentences, its page, and its sums."""

import re
import tomllib
from importlib.resources import files

import pytest

from manyhands.clinic import clinic_messages, conclude, costs
from manyhands.clinic.conclude import Conclusion, Statement
from manyhands.clinic.message_values import format_percent
from manyhands.clinic.page import as_html
from manyhands.clinic.plain_page import WIDTH, as_text
from manyhands.clinic.visit import Visit
from manyhands.rehearsal import Event, Layout, judge
from manyhands.rehearsal.rehearse_command import Rehearsal

UNITS = {
    unit["name"][:2]
    for unit in tomllib.loads((files("manyhands") / "units.toml").read_text())["unit"]
}


@pytest.mark.parametrize("key", clinic_messages.MISTAKES)
def test_every_mistake_names_units_that_the_course_has(key):
    title, text, remedy, units = clinic_messages.MISTAKES[key]
    assert title and text and remedy and units and set(units) <= UNITS


def test_units_of_remarks_are_there():
    assert set(clinic_messages.REMARK_UNITS) <= set(clinic_messages.REMARKS)
    assert {unit for units in clinic_messages.REMARK_UNITS.values() for unit in units} <= UNITS


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0.5, "50%"),
        (0.0312, "3.1%"),
        (2e-6, "2.0e-06"),
        (3.0, "300%"),
        (float("inf"), "more than 100 times"),
    ],
)
def test_percent(part, text):
    assert format_percent(part) == text


def facts(bounds, spans, calls=(), kernel=None):
    account = {"rank": 0, "peak_bytes": None, "events": [], "collectives": {}}
    return {
        "bounds": bounds,
        "spans": spans,
        "calls": list(calls),
        "kernel": kernel or [None] * len(bounds),
        "threads": [{"7": times[1], "8": 3 * times[1]} for times in kernel or ()],
        "account": account,
        "peak_bytes": 2**20,
        "gpu_peak_bytes": None,
    }


def test_costs_leave_the_first_step_out():
    spans = [
        ("forward", 0.0, 0.9),
        ("forward", 1.0, 1.1),
        ("backward", 1.1, 1.4),
        ("forward", 1.5, 1.7),
    ]
    calls = [{"call": "allreduce", "bytes": 8, "start": 1.3, "stop": 1.5}]
    kernel = [(0.0, 0.0), (0.9, 0.0), (1.15, 0.1), (1.4, 0.2)]
    totals = costs.add_up({0: facts([0.0, 1.0, 1.5, 2.0], spans, calls, kernel)})
    assert totals.steps == 2 and totals.step_ms == [pytest.approx(500)]
    assert totals.kinds_ms[0]["forward"] == pytest.approx(150) and totals.kinds_ms[0][
        "backward"
    ] == pytest.approx(150)
    assert totals.runs == [pytest.approx(0.5)] and totals.ready == [pytest.approx(0.2)]
    assert totals.waited == [pytest.approx(0.6)]  # thread 8 waited 0.6 s of one second
    assert (
        totals.asleep == [pytest.approx(0.3)]
        and totals.overlap == pytest.approx(0.5)
        and totals.calls == 0.5
    )


def test_no_step_was_timed():
    assert costs.add_up({0: facts([], [])}) is None and costs.add_up({0: facts([1.0], [])}) is None


@pytest.fixture
def done():
    visit = Visit("<train>.py", 2, "torchrun", ["--lr", "0.1"])
    return Conclusion(
        visit,
        "No. 1 likely mistake was found.",
        "No. Every rank completed 9 steps.",
        "*On GPUs*",
        [Statement("sum", "It is 2 < 4 times.", "A <title>", "Divide.", ("01",))],
        [Statement("noise", "A remark of many words. " * 20)],
        [("steps", "4")],
        units=[("01", "By hand", "A <title>")],
        code=1,
    )


def test_the_page_holds_all_and_escapes_it(done):
    page = as_html(done)
    assert "&lt;train&gt;.py --lr 0.1" in page and "2 &lt; 4" in page and "<title>.py" not in page
    assert (
        all(question in page for question in clinic_messages.QUESTIONS)
        and "<em>On GPUs</em>" in page
    )
    assert not re.search(r"(src|href)=", page)


def test_what_a_rehearsal_finds_is_on_the_page_and_in_the_text(done):
    place = ("train.py", 7)
    events = [
        Event(
            "collective",
            "all_reduce",
            ranks=(0, 1),
            tensors=(Layout(shape=(4, 4), contiguous=False),),
            file=place[0],
            line=place[1],
        )
    ]
    traces = {0: events, 1: events}
    done.visit.rehearsal = Rehearsal("train.py", traces, judge(traces), {}, whole={0: 1, 1: 1})
    done.gpus, done.gpu_findings, done.gpu_note = conclude._describe_gpus(done.visit, None)
    page, text = as_html(done), as_text(done)
    for shown in (page, text.replace("\n   ", " ")):
        assert (
            "1 thing was found that NCCL would do differently" in shown
            and "Fails: train.py:7, ranks 0, 1" in shown
        )
        assert (
            "not contiguous" in shown
            and "Give it contiguous()" in shown
            and "for 9 steps" in shown
            and "It cannot see" in shown
        )
    done.visit.rehearsal.findings = []
    assert "Nothing was found" in conclude._describe_gpus(done.visit, None)[0]
    done.visit.rehearsal.errors = {1: "Traceback\nValueError: 7"}
    assert conclude._describe_gpus(done.visit, None) == (
        (
            "Not determined, because in a second run, whose calls were recorded, the script failed:"
            " ValueError: 7"
        ),
        [],
        "",
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "must first complete"),
        ({"ranks": 1}, "one rank only"),
        ({"launcher": "mpirun"}, "for torchrun"),
    ],
)
def test_why_there_was_no_rehearsal_is_told(done, changes, said):
    vars(done.visit).update(changes)
    assert said in conclude._describe_gpus(done.visit, None)[0]


def test_the_text_says_the_same_in_lines_that_fit(done):
    text = as_text(done)
    assert "! A <title>" in text and "-> Divide." in text and "01 By hand" in text
    assert max(map(len, text.splitlines())) <= WIDTH

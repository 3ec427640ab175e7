"""The line that is shown while ranks wait.

It says what was seen and no more, and it leaves nothing behind.
"""

import io
import threading
import types

import pytest

from manyhands.cluster import show
from manyhands.cluster.faults import live_line, watch
from manyhands.cluster.faults.source_lines import Places

CELL = 7


class Working:
    def ready(self):
        return False


@pytest.fixture
def clock(monkeypatch):
    now = types.SimpleNamespace(s=0.0)
    for module in (watch, live_line):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: now.s))
    return now


@pytest.fixture
def running(clock):
    """A `Watch` over four ranks that have not reported yet."""
    reports = watch.Reports.__new__(watch.Reports)  # without its socket
    reports.clear()
    return watch.Watch(
        {rank: Working() for rank in range(4)},
        CELL,
        reports,
        exits=dict,
        hang_timeout_s=60,
        limit_s=120,
    )


def report(running, rank, call=None, key="1", cell=CELL):
    """The rank has reported twice that it waits in `call`, or computes."""
    for notes in ({}, {"notes": [], "names": []}):
        running.reports._note(
            {
                "rank": rank,
                "cell": cell,
                "key": key,
                "blocked": call is not None,
                "lines": [],
                "call": call and {"call": call},
                **(notes if call is not None else {}),
            }
        )


def ends(running, rank, ok=True):
    running.outcome.results[rank] = {"ok": ok}
    running.pending.pop(rank)


def line(running):
    return live_line.describe_waiting(running, Places(), "")


def at(running, clock, s, **calls):
    """The time is `s`, and the ranks, by name, report where they still are."""
    clock.s = s
    for rank, call in calls.items():
        report(running, int(rank[1:]), call)


def test_nothing_is_said_before_a_rank_has_waited_for_long(running, clock):
    at(running, clock, 0, r0="barrier", r1=None, r2="recv", r3=None)
    at(running, clock, 1.9, r0="barrier", r1=None, r2="recv", r3=None)
    assert line(running) == ""
    report(running, 0, "barrier", key="the next call")
    report(running, 2, "recv", key="the next call")
    at(running, clock, 3.5)
    assert line(running) == "", "each of the calls took less"


def test_ranks_that_do_the_same_are_named_once_and_what_they_do_in_the_order_of_what_matters(
    running, clock
):
    at(running, clock, 0, r0="barrier", r1="barrier", r2=None, r3="barrier")
    at(running, clock, 4.2, r0="barrier", r1="barrier", r2=None, r3="barrier")
    assert line(running) == "Ranks 0, 1, 3 have been in barrier for 4 s; rank 2 computes."
    ends(running, 2)
    assert line(running) == "Ranks 0, 1, 3 have been in barrier for 4 s; rank 2 has finished."
    running.outcome.results[2]["ok"] = False
    assert (
        line(running) == "Ranks 0, 1, 3 have been in barrier for 4 s; rank 2 raised an exception."
    )
    running.outcome.exits[2] = {"status": 9}
    assert line(running) == "Ranks 0, 1, 3 have been in barrier for 4 s; rank 2 died."


def test_a_rank_that_came_later_has_not_waited_as_long(running, clock):
    at(running, clock, 0, r0="all_reduce", r1="recv", r2=None, r3=None)
    at(running, clock, 2.5, r0="all_reduce", r1="recv", r2="all_reduce", r3=None)
    at(running, clock, 3.1, r0="all_reduce", r1="recv", r2="all_reduce", r3=None)
    assert (
        line(running)
        == "Ranks 0, 2 have been in all_reduce for 0 to 3 s; rank 1 has been in recv for 3 s; rank "
        "3 computes."
    )


def test_a_rank_of_which_nothing_was_heard_is_not_said_to_do_anything(running, clock):
    at(running, clock, 0, r0="", r2="barrier")
    report(running, 3, "barrier", cell=CELL - 1)
    at(running, clock, 5, r0="")
    assert (
        line(running)
        == "Rank 0 has waited in communication for 5 s; ranks 1-3 have not reported for 5 s."
    )


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn, in a notebook of a learner's."""
    lines = []
    monkeypatch.delenv("MANYHANDS_QUIET", raising=False)
    monkeypatch.setattr(show, "in_notebook", lambda: True)
    monkeypatch.setattr(show, "_draw", lambda line, handle: lines.append(line) or True)
    monkeypatch.setattr(show, "UPDATE_S", 0.001)
    monkeypatch.setattr(show, "LOOK_S", 0.001)
    return lines


def shown(*lines):
    """Run a block for as long as it takes to ask for these lines, the last of them twice."""
    left, over = [*lines], threading.Event()

    def next_line(seconds):
        if len(left) > 1:
            return left.pop(0)
        over.set()
        return left[0]

    with show.Progress(next_line, after_s=0):
        asked = over.wait(0.05 if show.quiet() or not show.in_notebook() else 30)
    return asked


def test_a_line_changes_only_with_its_text_and_is_taken_away(drawn):
    assert shown("", "", "a", "a", "b", "b") and drawn == ["a", "b", ""]


def test_a_line_that_is_no_longer_true_is_taken_away_at_once(drawn):
    assert shown("a", "", "") and drawn == ["a", ""]


@pytest.mark.parametrize(
    "quiet, notebook", [("1", True), ("", False)], ids=["a build or a grader", "no notebook"]
)
def test_nothing_is_drawn_or_asked(quiet, notebook, drawn, monkeypatch):
    monkeypatch.setenv("MANYHANDS_QUIET", quiet)
    monkeypatch.setattr(show, "in_notebook", lambda: notebook)
    monkeypatch.setattr(show.sys, "stderr", io.StringIO())
    assert not shown("a", "b") and drawn == []


def test_a_name_with_html_stays_text_and_the_end_leaves_no_output(monkeypatch):
    published = []
    monkeypatch.setattr(show, "in_notebook", lambda: True)
    monkeypatch.setattr(
        "IPython.display.display",
        lambda data, raw, display_id: (
            published.append(data)
            or types.SimpleNamespace(update=lambda data, raw: published.append(data))
        ),
    )
    handle = show._draw("in <b>fit</b>", None)
    show._draw("", handle)
    assert published == [
        {
            "text/plain": "in <b>fit</b>",
            "text/html": '<span style="opacity: .75">in &lt;b&gt;fit&lt;/b&gt;</span>',
        },
        {"text/plain": "", "text/html": ""},
    ]

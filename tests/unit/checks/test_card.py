"""The card that a check shows in a notebook: what it says, without colour too, and where it is not
shown.
"""

import io
import re
import sys
import types
from html.parser import HTMLParser

import pytest

from manyhands.checks import Report, card, colour, progress
from manyhands.checks import report as report_module
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.record import MIME
from manyhands.checks.report import Stopped
from manyhands.cluster import Hang
from manyhands.cluster.faults.healing import Healing
from manyhands.units import units

CRITERIA = {
    "average": {
        "sum": (1, "the sum is right"),
        "mean": (2, "the mean is right"),
        "rate": (1, "the rate < 1"),
    }
}


class Words(HTMLParser):
    """What a reader without styles gets: the text, and the tags by name."""

    def __init__(self, html):
        super().__init__()
        self.text, self.tags, self.open = "", [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def report(*problems):
    """A report with these problems, `None` where a criterion passes."""
    made = Report("average", CRITERIA)
    for name, problem in zip(CRITERIA["average"], problems, strict=False):
        made.judge(name, [problem], [1.0])
    return made


def unwritten():
    """A report of an exercise that is not begun."""
    made = Report("average", CRITERIA)
    made.fail(Stopped("average is not written yet."))
    return made


def test_signs_and_words_tell_the_state_without_colour():
    made = report(None, {"expected": [1, 2], "got": [3, 4], "rank": 2, "mistake": "You summed."})
    made.blocked("gpu", points=5, text="needs a GPU", why="no GPU")
    words = Words(made.html())
    assert words.open == [] and "script" not in words.tags and "style" not in words.tags
    assert "average: 1 of 3 points · ✓ 1 passed · ✗ 1 failed · – 1 not checked here" in words.text
    assert (
        "✓ PASS 1/1 the sum is right" in words.text and "✗ FAIL 0/2 the mean is right" in words.text
    )
    assert "– not checked here needs a GPU" in words.text
    assert (
        words.text.index("expected:[1, 2]")
        < words.text.index("got:[3, 4]")
        < words.text.index("rank: 2")
    )


def test_what_is_not_begun_is_grey_and_no_cross():
    made = unwritten()
    assert card.states(made.criteria) == [card.NOT_BEGUN] * 3
    words = Words(made.html())
    assert "○ not begun 0/2" in words.text and "✗" not in words.text and "FAIL" not in words.text
    assert (
        words.text.count("is not written yet") == 1
        and card.SAME not in words.text
        and "mistake" not in words.text
    )
    assert card.COLOUR["fail"] not in made.html()


def test_a_wrong_answer_is_red_also_beside_one_that_is_not_begun():
    made = Report("average", CRITERIA)
    made.judge("sum", [{"mistake": "You summed."}], [1.0])
    made.judge("mean", [{"mistake": "mean is not written yet."}], [])
    made.judge("rate", [{"mistake": "It is counted when the mean is right."}], [])
    assert card.states(made.criteria) == ["fail", card.NOT_BEGUN, card.NOT_BEGUN]
    assert card.COLOUR["fail"] in made.html()
    assert card.states(report({"mistake": "It waits."}, {"mistake": card.SAME}).criteria) == [
        "fail",
        "fail",
    ]


def test_all_that_units_say_of_an_unwritten_function_is_known_to_the_card():
    from importlib import import_module

    said = {}
    for unit in units("."):
        try:
            mistakes = import_module(f"manyhands.checks.{unit.name[3:]}.messages").MISTAKES
        except (ModuleNotFoundError, AttributeError):
            continue
        if "unwritten" in mistakes:
            said[unit.name] = mistakes["unwritten"]
    from manyhands.checks.in_kernel import WORDS

    said["in_kernel"] = WORDS["unwritten"]
    assert (
        len(said) > 10 and [name for name, text in said.items() if card.UNWRITTEN not in text] == []
    )


def test_the_hint_is_folded_and_its_steps_one_behind_the_other(monkeypatch):
    module = types.ModuleType("manyhands.checks.tiny_unit")
    module.HINTS = {"90-average": ("Count <them>.", "Divide by the world size.")}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(
        "manyhands.checks.hints.units",
        lambda root: [types.SimpleNamespace(number="90", name="90_tiny_unit")],
    )
    wrong = report({"mistake": "summed"}).html()
    assert re.findall("<summary.*?>(.*?)<", wrong) == ["Hint 90-average", "Step 2 of 2"]
    assert (
        wrong.index("Count &lt;them&gt;.") < wrong.index("Step 2") < wrong.index("Divide by")
        and Words(wrong).open == []
    )
    assert "<details" not in report(None, None, None).html(), "no hint where nothing is wrong"


def test_texts_of_learners_stay_text():
    hostile = '<img src=x onerror="alert(1)">'
    made = report(
        {"expected": hostile, "got": hostile + "\n<script>", "mistake": hostile, "rank": hostile}
    )
    assert set(Words(made.html()).tags) <= {"div", "span", "b", "small", "pre", "br"}


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_names_between_backticks_are_code_and_nothing_else_of_a_learners_text_is():
    words = Words(card._lines("`recv` gives `<b>`, and ` one ` alone\nstays `open\nhere`"))
    assert words.text == "recv gives <b>, and  one  alonestays `openhere`" and words.tags == [
        "code",
        "code",
        "code",
        "br",
        "br",
    ]


@pytest.mark.parametrize("state", card.COLOUR)
def test_white_letters_can_be_read_on_every_colour(state):
    assert 1.05 / (luminance(card.COLOUR[state]) + 0.05) >= 4.5


class Cluster(Healing):
    """A cluster whose ranks never do what they are asked for, and report it with this text."""

    def __init__(self, text):
        self.text = text

    def run(self, *args, **options):
        fault = Hang("Rank 0 is waiting.", culprits=[1])
        fault.text, fault.edges, fault.svg = self.text, [(0, 1)], "<svg>the graph</svg>"
        fault.differs = "tensors" if "[3]" in self.text else ""
        self._show(fault)
        raise fault


HANG = (
    "HANG: rank 0 is waiting for a <rank>.\n  rank 0  waits in recv at line 2 of this cell: "
    "recv(<x>)"
)
MISTAKES = {"known": {}, "alone": "Every rank must call it."}


def hanging(text=HANG, times=1):
    """A check whose experiments all hang."""
    with RankReport("average", Cluster(text), CRITERIA, MISTAKES) as made:
        for name in list(CRITERIA["average"])[:times]:
            with made.part(name):
                made.on_ranks("unit.ranks", "experiment", remark="alone")
        made.on_ranks("unit.ranks", "experiment", remark="alone")
    return made


def test_a_report_from_the_ranks_follows_the_card_in_a_fold(monkeypatch, published, capsys):
    monkeypatch.delenv("MANYHANDS_QUIET", raising=False)
    monkeypatch.setattr(report_module, "in_notebook", lambda: True)
    made = hanging()
    assert capsys.readouterr().out == "", "nothing comes before the card"
    (shown,) = published
    html, words = shown["text/html"], Words(shown["text/html"])
    assert (
        set(words.tags)
        <= {"div", "span", "b", "small", "br", "details", "summary", "pre", "img", "code"}
        and words.text.count("waits in recv") == 1
    )
    assert (
        html.index("FAIL 0/1")
        < html.index("<details")
        < html.index("Report from the ranks: HANG: rank 0 is waiting for a &lt;rank&gt;.")
        < html.index("recv(&lt;x&gt;)")
    )
    assert 'alt="wait-for graph: 0 -&gt; 1"' in html and "<svg" not in html, (
        "two pictures on a page share names"
    )
    assert shown["text/plain"] == "\n".join([*made.lines(), HANG])


@pytest.mark.parametrize("quiet", ["1", ""], ids=["a build or a grader", "a terminal"])
def test_where_nothing_folds_the_report_follows_the_lines(quiet, monkeypatch, published, capsys):
    monkeypatch.setenv("MANYHANDS_QUIET", quiet)
    monkeypatch.setattr(report_module, "in_notebook", lambda: False)
    made = hanging(times=2)
    assert capsys.readouterr().out == "\n".join([*made.lines(), HANG, ""]), (
        "what is the same is shown once"
    )


def test_a_check_that_breaks_off_still_shows_the_report(monkeypatch, published, capsys):
    with (
        pytest.raises(ZeroDivisionError),
        RankReport("average", Cluster(HANG), CRITERIA, MISTAKES) as made,
    ):
        with made.part("sum"):
            made.on_ranks("unit.ranks", "experiment")
        1 / 0  # noqa: B018 - raises
    assert published == [] and capsys.readouterr().out == HANG + "\n"


def test_what_differs_is_named_before_what_is_likely():
    cause = "Likely cause: the tensors differ: float32 [3] on rank 0, float32 [4] on rank 1."
    for text, order in (
        (f"{HANG}\n{cause}", (cause, MISTAKES["alone"])),
        (f"{HANG}\nLikely cause: rank 1 has ended.", (MISTAKES["alone"], "Likely cause")),
    ):
        mistake = hanging(text).criteria[0]["detail"]["mistake"]
        assert mistake.count("Likely cause") == 1 and mistake.index(order[0]) < mistake.index(
            order[1]
        )


@pytest.fixture
def published(monkeypatch):
    found = []
    monkeypatch.setattr(report_module, "_publish", found.append)
    return found


@pytest.mark.parametrize("quiet, notebook", [("1", True), ("1", False), ("", False)])
def test_builds_graders_and_terminals_get_the_plain_lines_alone(
    quiet, notebook, monkeypatch, published, capsys
):
    monkeypatch.setenv("MANYHANDS_QUIET", quiet)
    monkeypatch.setattr(report_module, "in_notebook", lambda: notebook)
    monkeypatch.delenv("MANYHANDS_RECORD", raising=False)
    made = report(None, {"mistake": "summed"})
    made.show()
    assert published == [] and capsys.readouterr().out == "\n".join(made.lines()) + "\n"


def test_a_learners_notebook_gets_the_card_beside_the_same_lines(monkeypatch, published, capsys):
    monkeypatch.delenv("MANYHANDS_QUIET", raising=False)
    monkeypatch.setenv("MANYHANDS_RECORD", "1")
    monkeypatch.setattr(report_module, "in_notebook", lambda: True)
    made = report(None, {"mistake": "summed"})
    made.show()
    assert capsys.readouterr().out == ""
    assert published == [
        {"text/plain": "\n".join(made.lines()), "text/html": made.html()},
        {MIME: made.record},
    ]


def test_a_check_that_is_green_in_the_learners_lab_is_remembered(monkeypatch, published, tmp_path):
    monkeypatch.delenv("MANYHANDS_QUIET", raising=False)
    monkeypatch.setattr(report_module, "in_notebook", lambda: True)
    lab = tmp_path / "work" / "06_ddp"
    lab.mkdir(parents=True)
    for folder, problem, seen in (
        (lab, {"mistake": "x"}, {}),
        (tmp_path, None, {}),
        (lab.parent, None, {}),
        (lab, None, {"06_ddp": {"hints": [], "seen": ["average"]}}),
    ):
        monkeypatch.chdir(folder)
        report(None, None, problem).show()
        assert progress.load(tmp_path / "work") == seen
    blocked = Report("gpu")
    blocked.blocked("nccl", points=1, text="NCCL", why="no GPU")
    blocked.show()
    assert progress.load(tmp_path / "work") == seen, "nothing was seen green"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "stream, no_color, term, painted",
    [
        (Terminal(), "", "xterm", True),
        (Terminal(), "1", "xterm", False),
        (Terminal(), "", "dumb", False),
        (io.StringIO(), "", "xterm", False),
    ],
)
def test_colour_on_a_terminal_only(stream, no_color, term, painted, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", term)
    lines = [
        "PASS 2/2  mean",
        "  FAIL     0/1  few bytes",
        "BLOCKED   NCCL",
        "",
        "   mistake:  FAIL is a word",
    ]
    shown = colour.lines(lines, stream)
    assert [re.sub("\x1b\\[\\d*m", "", line) for line in shown] == lines
    assert (shown[1] == "  \x1b[31mFAIL\x1b[0m     0/1  few bytes") == painted and shown[
        3:
    ] == lines[3:]
    assert (shown == lines) != painted

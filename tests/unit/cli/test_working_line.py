"""What a command shows while it works.

It is one line on a terminal from the beginning on, and nothing elsewhere.
"""

import io
import re
import sys

import pytest

from manyhands import cli
from manyhands.authoring import command, make
from manyhands.command_line import working
from manyhands.grading import check_command, grade_report
from manyhands.grading.classroom import class_commands
from manyhands.grading.engine import Grade


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def shown(self):
        """The texts that stood in the line, one after the other; what clears it is none."""
        return [text.strip() for text in self.getvalue().split("\r") if text.strip()]

    def left(self):
        """What is still to be seen at the end."""
        rows = []
        for row in self.getvalue().split("\n"):
            seen = ""
            for text in row.split("\r"):
                seen = text + seen[len(text) :]
            rows.append(seen.rstrip())
        return "\n".join(rows)


def as_stderr(monkeypatch):
    """A terminal instead of stderr.

    It is set in the test itself, because pytest puts its own there after the fixtures.
    """
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_a_shorter_text_leaves_nothing_of_a_longer_one_and_the_end_nothing_at_all():
    terminal = Terminal()
    with working("a long text", terminal) as line:
        line.show("short")
        assert terminal.left() == "short"
    assert terminal.left() == ""


def test_an_error_stands_in_a_clear_line():
    terminal = Terminal()
    with pytest.raises(RuntimeError), working("something", terminal):
        raise RuntimeError
    assert terminal.left() == ""


def test_elsewhere_nothing_is_shown():
    stream = io.StringIO()
    with working("something", stream) as line:
        line.show("more")
    assert stream.getvalue() == ""


def test_a_check_says_its_cells_in_one_line_on_a_terminal_and_once_elsewhere():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = check_command.Progress(stream)
        progress("your notebook", 0, 3)
        progress("your notebook", 1, 3)
        progress.clear()
    assert (
        terminal.shown() == ["your notebook: cell 1 of 3", "your notebook: cell 2 of 3"]
        and terminal.left() == ""
    )
    assert file.getvalue() == "your notebook: 3 cells ...\n"


def test_a_line_that_stays_is_not_replaced():
    terminal = Terminal()
    progress = check_command.Progress(terminal)
    progress.say("2 checks run before yours", stays=True)
    progress("your notebook", 0, 3)
    progress.clear()
    assert terminal.left() == "2 checks run before yours\n"


def test_class_commands_show_a_line_before_they_load_what_takes_seconds(tmp_path, monkeypatch):
    terminal = as_stderr(monkeypatch)
    monkeypatch.setattr(class_commands, "find_root", lambda: tmp_path)
    monkeypatch.setattr(class_commands, "unit_named", lambda word, root: word)
    there = []
    monkeypatch.setattr(
        "manyhands.grading.nbgrader.class_settings.Classroom",
        lambda root: there.append(terminal.left()),
    )
    monkeypatch.setattr(class_commands, "_collect", lambda *_: 0)
    assert class_commands.collect(["90"]) == 0
    assert there == ["loading the gradebook's program ..."] and terminal.left() == ""


def test_a_word_that_is_no_lab_is_answered_before_that(tmp_path, monkeypatch):
    terminal = as_stderr(monkeypatch)
    monkeypatch.setattr(class_commands, "find_root", lambda: tmp_path)
    assert class_commands.grade(["90"]) == 2
    assert terminal.left().startswith("manyhands: There is no lab '90'.")


def test_the_bar_is_there_before_the_first_one_is_graded(monkeypatch):
    terminal = as_stderr(monkeypatch)
    with class_commands._bar("06_ddp") as progress:
        progress(0, 3, "the solution")
        assert "0/3" in terminal.left() and "the solution" in terminal.left()


def test_doctor_shows_a_line_while_it_looks(monkeypatch):
    terminal = as_stderr(monkeypatch)
    assert cli.main(["doctor"]) == 0
    assert terminal.shown() == ["looking at this machine ..."] and terminal.left() == ""


@pytest.mark.parametrize("live", [True, False])
def test_a_build_says_which_cell_runs_and_ends_in_one_line(live, tmp_path, monkeypatch):
    piece = type("Piece", (), {"notebook": "06.ipynb", "short": lambda self, path: path})()

    def build(piece, run, remeasure, progress):
        progress(2, 9)
        return []

    stream = Terminal() if live else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(command, "find_root", lambda: tmp_path)
    monkeypatch.setattr(command.layout, "pieces", lambda root, units: [piece])
    monkeypatch.setattr(make, "build", build)
    assert command.main(["06"]) == 0
    assert ("06.ipynb: cell 2 of 9" in stream.getvalue()) is live
    shown = stream.left() if live else stream.getvalue()
    assert re.fullmatch(r"06\.ipynb \.\.\. \d\.\d s, unchanged\n", shown)


def test_why_there_is_no_sandbox_is_for_who_asks():
    grade = Grade("06_ddp")
    grade.sandbox, grade.no_sandbox = (
        "without a sandbox (that changes no points)",
        "bubblewrap is missing\nno container engine",
    )
    assert "bubblewrap" not in grade_report.as_text(
        grade
    ) and "without a sandbox" in grade_report.as_text(grade)
    assert "  bubblewrap is missing\n  no container engine" in grade_report.as_text(
        grade, verbose=True
    )

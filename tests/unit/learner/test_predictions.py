"""Predictions: what is asked, what is kept, and what a learner reads.

Builds see nothing of it.
"""

import json
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from manyhands.checks import card, progress
from manyhands.learner import (
    plain_form,
    prediction_card,
    predictions,
    questions,
    start_page,
)
from manyhands.learner.questions import Question
from manyhands.shared import hub_client
from manyhands.units import units

NUMBER = ("06-messages", "How many messages does a step send?")
CHOICE = ("06-apart", "Do the models come closer?", ["closer", "further apart", "neither"])
UNIT = "06_ddp"


@pytest.fixture
def fresh(monkeypatch):
    """Call it for the state of a new kernel."""

    def new():
        for name in ("_asked", "_predictions", "_came", "_forms"):
            monkeypatch.setattr(predictions, name, {})

    new()
    return new


@pytest.fixture(autouse=True)
def work(fresh, tmp_path, monkeypatch):
    """A learner's folder, in which we are."""
    monkeypatch.delenv("MANYHANDS_QUIET", raising=False)
    monkeypatch.delenv(hub_client.BOARD, raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def kept(work, name="06-messages"):
    return progress.predictions(work, UNIT).get(name)


def test_a_number_is_predicted_settled_and_kept(work, capsys):
    predictions.predict(*NUMBER, unit="messages", guess=8)
    assert kept(work)["guess"] == 8 and "came" not in kept(work)
    predictions.settle("06-messages", lambda: 6)
    assert (
        "You predicted: 8 messages. The run: 6 messages."
        in capsys.readouterr().out.splitlines()[-1]
    )
    prediction = kept(work)
    assert (prediction["came"], prediction["right"], prediction["surprise"]) == (6, False, 0.415)
    assert prediction["locked"] <= prediction["settled"]


def test_a_choice_is_given_by_its_text_or_its_number(work, capsys):
    predictions.predict(*CHOICE, guess=3)
    predictions.settle("06-apart", "neither")
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == "You predicted: neither. The run: neither. Right."
    )
    assert kept(work, "06-apart")["right"] is True and kept(work, "06-apart")["surprise"] == 0


def test_what_is_locked_stays(work, fresh, capsys):
    predictions.predict(*NUMBER, guess=8)
    predictions.predict(*NUMBER, guess=6)
    fresh()  # a restart of the kernel does not help either
    predictions.predict(*NUMBER, guess=6)
    assert kept(work)["guess"] == 8
    predictions.settle("06-messages", 6)
    predictions.settle("06-messages", 8)
    assert (kept(work)["came"], kept(work)["right"]) == (6, False)
    capsys.readouterr()
    fresh()
    predictions.predict(*NUMBER)
    assert "You predicted: 8. The run: 6." in capsys.readouterr().out


def test_who_skips_it_reads_what_came_and_nothing_is_kept(work, capsys):
    predictions.predict(*CHOICE)
    predictions.settle("06-apart", "closer")
    assert "You made no prediction" in capsys.readouterr().out
    assert not progress.path_in(work).exists()
    predictions.predict(*CHOICE, guess=1)  # after the run
    assert "The run came before a prediction: closer." in capsys.readouterr().out
    assert not progress.path_in(work).exists()


def test_who_never_ran_the_question_reads_nothing(capsys):
    predictions.settle("06-apart", "closer")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "came",
    [lambda: unknown, lambda: {}["far"], lambda: 1 / 0, "sideways", None],  # noqa: F821
    ids=["no variable", "no key", "no number", "no choice", "nothing"],
)
def test_a_run_that_was_not_made_or_changed_is_told(work, capsys, came):
    predictions.predict(*CHOICE, guess=1)
    predictions.settle("06-apart", came)
    assert "nothing to settle 06-apart with yet" in capsys.readouterr().out
    predictions.settle("06-apart", "neither")
    assert kept(work, "06-apart")["came"] == "neither"


def test_what_the_run_prints_when_it_is_asked_is_not_shown(capsys):
    """A fault's report, of a cluster that cannot answer."""

    def came():
        print("EXCEPTION: three ranks")
        raise RuntimeError("name 'loud' is not defined\nat line 1")

    predictions.predict(*NUMBER, guess=8)
    capsys.readouterr()
    predictions.settle("06-messages", came)
    assert (
        capsys.readouterr().out
        == "There is nothing to settle 06-messages with yet (name 'loud' is not defined): run the "
        "cells above first.\n"
    )


@pytest.fixture
def kernel(monkeypatch):
    """An IPython in a notebook; `events["pre_run_cell"](None)` begins its next cell."""
    shell = SimpleNamespace(kernel=1, user_ns={}, calls={"pre_run_cell": None})
    shell.events = SimpleNamespace(
        register=shell.calls.__setitem__, unregister=lambda name, call: shell.calls.pop(name)
    )
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    for name in plain_form.OTHER_PLACES:
        monkeypatch.delenv(name, raising=False)
    return shell


def test_in_jupyterlab_the_form_is_shown(kernel, monkeypatch):
    """And its text where a page cannot draw it."""
    form, shown = pytest.importorskip("manyhands.learner.prediction_form"), []
    monkeypatch.setattr(form, "display", lambda data, **_: shown.append(data))
    predictions.predict(*CHOICE)
    assert '  3. neither\nTo predict: predict("06-apart", guess=...).' in shown[0]["text/plain"]
    predictions._forms["06-apart"].answer.value = "neither"
    kernel.calls["pre_run_cell"](None)
    assert "You predicted: neither." in predictions.describe(
        Question(*CHOICE[:2], tuple(CHOICE[2]))
    )


@pytest.mark.parametrize("place", ["VS Code", "Colab", "Kaggle", "old widgets", "no widgets"])
def test_where_no_widget_can_be_shown_the_form_is_plain_html(kernel, monkeypatch, capsys, place):
    """It can be read without a script, shows the call that answers it, and what became of it."""
    shown = []
    handle = SimpleNamespace(update=lambda form: shown.append(form._repr_mimebundle_()))
    monkeypatch.setattr(
        plain_form, "display", lambda form, **_: shown.append(form._repr_mimebundle_()) or handle
    )
    version = {"old widgets": "7.7.1"}.get(place, "8.1.9")
    monkeypatch.setattr(plain_form.metadata, "version", lambda name: version)
    if place == "VS Code":
        kernel.user_ns["__vsc_ipynb_file__"] = "06_ddp_tutorial.ipynb"
    elif place == "no widgets":
        monkeypatch.setattr(
            plain_form.metadata,
            "version",
            Mock(side_effect=plain_form.metadata.PackageNotFoundError),
        )
    elif place != "old widgets":
        monkeypatch.setenv(
            {"Colab": "COLAB_RELEASE_TAG", "Kaggle": "KAGGLE_KERNEL_RUN_TYPE"}[place], "x"
        )
    predictions.predict("06-apart", "Is 1 < 2 & <script>?", ["closer", "<b>further</b>", "neither"])
    first = shown[-1]
    assert (
        set(first) == {"text/plain", "text/html"}
        and "  3. neither\nTo predict" in first["text/plain"]
    )
    assert (
        "Is 1 &lt; 2 &amp; &lt;script&gt;?" in first["text/html"]
        and "<li>&lt;b&gt;further&lt;/b&gt;</li>" in first["text/html"]
    )
    assert (
        'predict("06-apart", guess=...)' in first["text/html"]
        and "<script" not in first["text/html"]
    )
    # the learner's own cell with the call must not close the question
    kernel.calls["pre_run_cell"](None)
    predictions.predict("06-apart", guess=2)
    assert "You predicted: &lt;b&gt;further&lt;/b&gt;. It is locked" in shown[-1]["text/html"]
    predictions.settle("06-apart", "neither")
    assert "The result is shown below the run." in shown[-1]["text/html"]
    assert "'You predicted: <b>further</b>. The run: neither." in capsys.readouterr().out


def test_without_a_work_folder_the_kernel_keeps_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "work_folder", lambda start=None: None)
    predictions.predict(*NUMBER, guess=8)
    predictions.settle("06-messages", 8)
    assert capsys.readouterr().out.endswith("Right.\n") and list(tmp_path.rglob("*.json")) == []


def test_a_disk_that_is_full_costs_no_prediction(monkeypatch, capsys):
    def full(*_, **__):
        raise OSError("no space")

    monkeypatch.setattr(progress, "lock_prediction", full)
    monkeypatch.setattr(progress, "settle_prediction", full)
    predictions.predict(*NUMBER, guess=8)
    predictions.settle("06-messages", 4)
    assert (
        "You predicted: 8. The run: 4. The number differs from your prediction by a factor of 2."
        in capsys.readouterr().out
    )


def test_grades_and_hints_beside_it_are_untouched(work):
    progress.add_result(work, UNIT, 5, 8)
    progress.add_hint(work, UNIT, "06-average")
    predictions.predict(*NUMBER, guess=8)
    predictions.settle("06-messages", 6)
    entry = progress.load(work)[UNIT]
    assert (entry["points"], entry["max"], entry["hints"]) == (
        5,
        8,
        ["06-average"],
    ) and "06-messages" in entry["predictions"]
    progress.add_result(work, UNIT, 8, 8)
    assert kept(work)["guess"] == 8


def test_a_build_prints_and_keeps_nothing_and_is_strict(work, monkeypatch, capsys):
    monkeypatch.setenv("MANYHANDS_QUIET", "1")
    predictions.predict(*CHOICE)
    predictions.predict(*NUMBER, guess=8)
    predictions.settle("06-apart", "neither")
    predictions.settle("06-messages", lambda: 6)
    assert capsys.readouterr() == ("", "") and not progress.path_in(work).exists()
    with pytest.raises(ValueError, match="'sideways' is none of the choices"):
        predictions.settle("06-apart", "sideways")
    with pytest.raises(ZeroDivisionError):
        predictions.settle("06-messages", lambda: 1 / 0)
    with pytest.raises(ValueError, match="no cell before has asked"):
        predictions.settle("06-other", 1)


def test_a_guess_or_a_question_that_is_none_is_told():
    predictions.predict(*CHOICE)
    for guess in (0, 4, "sideways", True, 1.0):
        with pytest.raises(ValueError, match="none of the choices: 'closer'"):
            predictions.predict("06-apart", guess=guess)
    with pytest.raises(ValueError, match="the question '06-unknown' has not been asked"):
        predictions.predict("06-unknown", guess=1)
    with pytest.raises(ValueError, match="not the name of a prediction"):
        predictions.predict("messages", "How many?")
    with pytest.raises(ValueError, match="two choices or more"):
        predictions.predict("06-one", "Which?", ["one"])


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("8", 8),
        ("1,000", 1000),
        ("2/3", 2 / 3),
        ("1e6", 10**6),
        (" 0.5 ", 0.5),
        (8.0, 8),
        ("-3", -3),
    ],
)
def test_numbers_as_people_type_them(typed, number):
    assert Question("06-x", "?").read(typed) == number


@pytest.mark.parametrize("typed", ["", "many", "nan", "inf", "1/0", None, True, "1e999"])
def test_what_is_no_number(typed):
    with pytest.raises(ValueError, match="is not a number"):
        Question("06-x", "?").read(typed)


@pytest.mark.parametrize(
    ("guess", "came", "within", "right", "surprise"),
    [
        (8, 8, 0, True, 0),
        (8, 6, 0, False, 0.415),
        (0.3, 0.1 + 0.2, 0, True, 0),
        (9, 10, 0.1, True, 0),
        (8, 10, 0.1, False, 0.322),
        (0, 4, 0, False, 10),
        (-1, 4, 0, False, 10),
        (0, 0, 0, True, 0),
        (1e-9, 1e9, 0, False, 10),
    ],
)
def test_right_and_surprise_of_numbers(guess, came, within, right, surprise):
    question = Question("06-x", "?", within=within)
    assert question.right(guess, came) is right
    assert question.surprise(guess, came) == pytest.approx(surprise, abs=1e-3)


def test_outcomes_are_numbers_and_texts_of_any_library():
    numpy = pytest.importorskip("numpy")
    assert Question("06-x", "?").outcome(numpy.float64(2.5)) == 2.5
    assert Question("06-x", "?", ("yes", "no")).outcome(numpy.bool_(True)) == "yes"
    assert Question("06-x", "?", ("no", "yes", "only on rank 0")).outcome(False) == "no"
    with pytest.raises(ValueError, match="none of the choices"):
        Question("06-x", "?", ("closer", "neither")).outcome(True)


def test_the_questions_of_a_folder_of_notebooks(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": "predict('06-no', '?')"},
        {"cell_type": "code", "source": ["%%px\n", "predict('06-no', '?')"]},
        {
            "cell_type": "code",
            "source": (
                'predict("06-b", "How " "many?",\n        unit="messages")\nsettle("06-b", sent)'
            ),
        },
        {"cell_type": "code", "source": ["predict('06-a', 'Which?',\n", "['yes', 'no'])"]},
    ]
    (tmp_path / "06_ddp.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "07_torn.ipynb").write_text('{"cells": [')
    by_name = questions.questions(tmp_path)
    assert list(by_name.values()) == [
        Question("06-b", "How many?", unit="messages"),
        Question("06-a", "Which?", ("yes", "no")),
    ]


def test_start_here_tells_how_often_one_was_right(work):
    course = units(work.parent)
    assert start_page.predictions(course, progress.load(work)) == ""
    predictions.predict(*NUMBER, guess=12)
    assert start_page.predictions(course, progress.load(work)) == "", "locked, and not settled"
    predictions.predict(*CHOICE, guess=3)
    predictions.settle("06-messages", 6)
    predictions.settle("06-apart", "neither")
    shown = start_page.predictions(course, progress.load(work))
    assert "| 06 | DistributedDataParallel | 2 | 1 | 0.5 |" in shown
    assert shown in start_page.text(work.parent)
    assert (
        start_page.predictions(
            course, {UNIT: {"predictions": {"06-x": 3}}, "07_multiworker": {"predictions": []}}
        )
        == ""
    )


def test_they_are_found_in_the_package_and_weigh_nothing():
    program = (
        "import sys; from manyhands import predict, settle; print(sorted({'ipywidgets', 'IPython', "
        "'numpy', 'nbformat'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_the_form_locks_by_its_button_or_when_the_next_cell_runs(work):
    form_of = pytest.importorskip("manyhands.learner.prediction_form").Form
    by_button = form_of(Question("06-a", "Which?", ("closer", "neither")), predictions.lock)
    by_button.button.click()
    assert "Choose one first" in by_button.message.value and not by_button.answer.disabled
    by_button.answer.value = "neither"
    by_button.button.click()
    assert by_button.answer.disabled and "You predicted: neither." in by_button.message.value
    by_button.answer.value = "closer"  # as a page might still send it
    by_button.button.click()
    by_button.end()
    by_run, skipped = (
        form_of(Question(name, "How many <b>?"), predictions.lock) for name in ("06-b", "06-c")
    )
    by_run.answer.value = "many"
    by_run.button.click()
    assert (
        "Type a number first" in by_run.message.value
        and "&lt;b&gt;" in by_run.box.children[0].value
    )
    by_run.answer.value = "7"
    by_run.end()
    skipped.end()
    assert {
        name: prediction["guess"] for name, prediction in progress.predictions(work, UNIT).items()
    } == {
        "06-a": "neither",
        "06-b": 7,
    }
    assert "Not predicted" in skipped.message.value and skipped.answer.disabled


@pytest.fixture
def shown(monkeypatch):
    """What a notebook shows, [{MIME type: text}]."""
    outputs = []
    monkeypatch.setattr(predictions, "in_notebook", lambda: True)
    monkeypatch.setattr(predictions, "_show", lambda asked: None)  # the forms have separate tests
    monkeypatch.setattr(
        pytest.importorskip("IPython.display"), "display", lambda data, raw: outputs.append(data)
    )
    return outputs


@pytest.mark.parametrize(
    ("guess", "came", "sign", "colour", "verdict"),
    [
        (8, 8, "✓", card.COLOUR["pass"], "Right."),
        (8, 4, "✗", prediction_card.SURPRISE, "differs from your prediction by a factor of 2."),
        (None, 4, "○", card.COLOUR[card.NOT_BEGUN], "You made no prediction."),
    ],
)
def test_a_notebook_shows_the_result_as_a_card_with_a_sign_and_both_answers(
    shown, capsys, guess, came, sign, colour, verdict
):
    predictions.predict(*NUMBER, unit="<b>messages", guess=guess)
    predictions.settle("06-messages", came)
    text, page = shown[-1]["text/plain"], shown[-1]["text/html"]
    assert (
        len(shown) == 1 + (guess is not None)
        and f"{sign} " in page
        and colour in page
        and verdict in page
    )
    assert "<b>messages" not in page and f"The run:</small> <b>{came} &lt;b&gt;messages</b>" in page
    assert ("Your prediction:</small>" in page) == (guess is not None) and NUMBER[1] in page
    capsys.readouterr()
    predictions.in_notebook = lambda: False
    predictions.settle("06-messages", came)
    assert capsys.readouterr().out == text + "\n", (
        "where no card is drawn, the text is as in a terminal"
    )


def test_a_result_is_shown_once_below_the_run(shown, fresh):
    predictions.predict(*CHOICE, guess=1)
    predictions.settle("06-apart", "neither")
    fresh()
    predictions.predict(*CHOICE)  # the next morning: the answer does not stand before the run
    assert (
        "neither" not in shown[-1]["text/html"]
        and "You predicted: closer. The result is shown below the run." in shown[-1]["text/html"]
    )
    predictions.settle("06-apart", "neither")
    assert "The run:</small> <b>neither" in shown[-1]["text/html"]


def test_a_form_that_is_settled_does_not_repeat_the_result(shown, monkeypatch):
    closed = []
    for name, guess in (("06-a", 1), ("06-b", None)):
        predictions.predict(name, *CHOICE[1:], guess=guess)
        monkeypatch.setitem(predictions._forms, name, SimpleNamespace(close=closed.append))
        predictions.settle(name, "neither")
    assert (
        closed
        == ["You predicted: closer. The result is shown below the run.", predictions.TOO_LATE]
        and predictions._forms == {}
    )


def test_a_prediction_of_an_earlier_question_is_no_mistake(shown, work):
    progress.lock_prediction(work, UNIT, "06-apart", "sideways")
    predictions.predict(*CHOICE)
    predictions.settle("06-apart", "neither")
    page = shown[-1]["text/html"]
    assert (
        "○ The question has changed since you answered it." in page
        and "sideways" in page
        and "✗" not in page
    )

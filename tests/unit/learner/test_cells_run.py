"""Which cells have run: what a kernel notes, and what Start_Here makes of it."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyter_client.manager import start_new_kernel

from manyhands.checks import progress
from manyhands.learner import cells_run, notebook_state, start_page
from manyhands.learner.copies import copy_course
from manyhands.learner.jupyter_server import environment, put_settings
from manyhands.units import units

ROOT = Path(__file__).resolve().parents[3]
NAME = "00_preflight_tutorial.ipynb"


def notebook(*cells):
    """Return the text of a notebook; a cell that begins with # is Markdown.

    The ids of the code cells are c0, c1, ...
    """
    code, made = 0, []
    for source in cells:
        is_code = not source.startswith("#")
        made.append(
            {
                "cell_type": "code" if is_code else "markdown",
                "id": f"c{code}" if is_code else f"m{len(made)}",
                "source": [source],
                "metadata": {},
            }
        )
        code += is_code
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def clone(tmp_path):
    """A clone with unit 00, whose copies in `work/` are the learner's."""
    for name, text in {
        "pyproject.toml": 'name = "manyhands"',
        "labs/00_preflight/00_preflight.ipynb": notebook("# Lab", "x = 1"),
        "notebooks/00_preflight.ipynb": notebook(
            "# Preflight",
            "import numpy",
            "## Ranks\n```\n# a comment\n```",
            "%%px\n# who\nprint(rank)",
            "",
            'predict("00-a", 3)',
            "## End",
            "y = `` | <b>$z$",
        ),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    copy_course(tmp_path)
    return tmp_path


def ran(clone):
    return progress.load(clone / "work").get("00_preflight", {}).get("ran", {})


def test_a_kernel_of_jupyterlab_notes_the_cells_of_its_notebook(clone):
    put_settings(clone)
    path = clone / "work" / NAME
    manager, client = start_new_kernel(
        kernel_name="python3",
        cwd=str(path.parent),
        env=environment(clone) | {"JPY_SESSION_NAME": str(path)},
    )
    try:

        def run(source, **cell):
            message = client.session.msg(
                "execute_request",
                {"code": source, "silent": False, "stop_on_error": False},
                metadata=cell,
            )
            client.shell_channel.send(message)
            while (
                client.get_shell_msg(timeout=60)["parent_header"].get("msg_id")
                != message["header"]["msg_id"]
            ):
                pass

        run("%%px\nprint(1)", cellId="c9")
        run("x = 1", cellId="c0")
        run("1 / 0", cellId="c1")
        run("unknown", cellId="c2")
        run("def", cellId="c3")
        run("x = 2")
        assert ran(clone) == {NAME: ["c0", "c1"]}, (
            "an error is a part of some lessons, but a cell that cannot begin has not run"
        )
        path.rename(path.with_name("moved.ipynb"))
        run("x = 3", cellId="c4")
        assert ran(clone) == {NAME: ["c0", "c1"]}
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_only_notebooks_of_units_in_work_are_noted(clone):
    for name in (
        "work/mine.ipynb",
        "work/06_ddp.txt",
        "labs/00_preflight/00_preflight.ipynb",
        "work/99_none.ipynb",
    ):
        (clone / name).write_text("{}")
        assert cells_run.place_of(clone / name) is None, name
    assert (
        cells_run.place_of(Path("")) is None
        and cells_run.place_of(clone / "work" / "00_gone.ipynb") is None
    )
    assert cells_run.place_of(clone / "work/00_preflight/00_preflight.ipynb") == (
        clone / "work",
        "00_preflight",
        "00_preflight/00_preflight.ipynb",
    )


def test_a_lab_that_a_class_has_added_and_a_notebook_of_ones_own_are_places_too(clone):
    (clone / "work/90_own_").mkdir()
    for name, unit in (("90_own_/90_own_.ipynb", "90_own_"), ("00_my_notes.ipynb", "00_preflight")):
        (clone / "work" / name).write_text(notebook("x = 1"))
        place = cells_run.place_of(clone / "work" / name)
        assert place == (clone / "work", unit, name)
        progress.add_run(*place, "c0")
        text = start_page.text(clone)
        assert f"]({name}#cell-id=c0), code cell 1 of 1, which begins with ` x = 1 `." in left_off(
            text
        )
        assert tutorial_cell(text) == f"[tutorial]({NAME})", "it is not the tutorial"


def test_a_progress_that_cannot_be_written_costs_no_cell(clone):
    result = SimpleNamespace(
        info=SimpleNamespace(cell_id="c0"), error_before_exec=None, error_in_exec=None
    )
    (clone / "work/.manyhands/progress.json").mkdir()
    cells_run.note((clone / "work", "00_preflight", NAME), result)


def run_cells(clone, *cells, name=NAME):
    for cell in cells:
        progress.add_run(clone / "work", "00_preflight", name, cell)
    return start_page.text(clone)


def left_off(text):
    line = re.search(r"^\*\*Continue where you left off:\*\* (.*)$", text, re.MULTILINE)
    return line and line[1]


def tutorial_cell(text):
    row = next(line for line in text.splitlines() if line.startswith("| 00 |"))
    return row.replace("\N{NO-BREAK SPACE}", " ").split(" | ")[3]


def test_start_here_leads_to_the_cell_that_ran_last(clone):
    assert (
        left_off(start_page.text(clone)) is None
        and tutorial_cell(start_page.text(clone)) == f"[tutorial]({NAME})"
    )
    text = run_cells(clone, "c0", "c1")
    assert (
        left_off(text)
        == f"[00 Preflight: your cluster, tutorial]({NAME}#cell-id=c1), code cell 2 of 4 in "
        "*Ranks*, which begins with ` print(rank) `."
    )
    assert (
        tutorial_cell(text).endswith("<br>2 of 4 cells")
        and "tutorial](" in text.split("**Next:**")[1].split("\n")[0]
    )
    text = run_cells(clone, "c0")
    assert "#cell-id=c0)" in left_off(text) and tutorial_cell(text).endswith("<br>2 of 4 cells"), (
        "a cell counts once"
    )


def test_a_finished_tutorial_is_ticked_and_the_lab_is_next(clone):
    text = run_cells(clone, "c0", "c1", "c3", "c4")
    assert tutorial_cell(text).endswith("<br>✓ 4 of 4 cells")
    assert "which begins with ``` y = `` | <b>$z$ ```." in text
    assert (
        "**Next:** unit 00, Preflight: your cluster: [your lab](00_preflight/00_preflight.ipynb)."
        in text
    )
    text = run_cells(clone, "c0", name="00_preflight/00_preflight.ipynb")
    assert left_off(text).startswith(
        "[00 Preflight: your cluster, lab](00_preflight/00_preflight.ipynb#cell-id=c0), code cell 1"
        " of 1 in *Lab*"
    )


def test_predictions_count_where_no_cell_is_noted(clone):
    progress.lock_prediction(clone / "work", "00_preflight", "00-a", 3)
    assert tutorial_cell(start_page.text(clone)).endswith("<br>1 of 1 predicted")


def test_every_question_of_the_course_is_counted():
    for unit in units(ROOT):
        cells = json.loads((ROOT / unit.tutorial).read_text())["cells"]
        asked = sum(
            len(re.findall(rf'^predict\("{unit.number}-', "".join(cell["source"]), re.MULTILINE))
            for cell in cells
            if cell["cell_type"] == "code"
        )
        assert notebook_state.questions_in(unit) == asked > 0


def test_more_of_a_newer_copy_counts_and_a_lost_notebook_does_not(clone):
    newer = "00_preflight_tutorial.new.ipynb"
    shutil.copy(clone / "work" / NAME, clone / "work" / newer)
    run_cells(clone, "c0")
    text = run_cells(clone, "c0", "c1", "c3", name=newer)
    assert tutorial_cell(text).endswith("3 of 4 cells") and left_off(text).startswith(
        f"[00 Preflight: your cluster, {newer}]("
    )
    (clone / "work" / newer).unlink()
    text = start_page.text(clone)
    assert tutorial_cell(text).endswith("<br>1 of 4 cells") and left_off(text) is None, (
        "the last one is gone, and only it is remembered"
    )


def test_half_a_character_in_a_notebook_costs_no_page(clone):
    (clone / "work" / NAME).write_text(notebook("# \ud83d", "x = '\ud83d'"))
    run_cells(clone, "c0")
    assert "code cell 1 of 1 in *?*" in left_off(
        start_page.write(clone).read_text(encoding="utf-8")
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"cells": 3}',
        '{"cells": [{"source": null}]}',
        notebook("# Other", "z = 1").replace("c0", "d"),
    ],
)
def test_a_notebook_that_is_broken_or_different_costs_no_page(clone, content):
    run_cells(clone, "c0", "c1")
    (clone / "work" / NAME).write_text(content)
    text = start_page.write(clone).read_text(encoding="utf-8")
    assert (
        "whose last cell that you ran no longer exists" in left_off(text)
        and tutorial_cell(text) == f"[tutorial]({NAME})"
    )

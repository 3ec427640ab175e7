"""`manyhands check`: finding what is meant, exit codes, progress, being stopped."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nbformat
import psutil
import pytest

from manyhands.checks import progress
from manyhands.grading import check_command


@pytest.fixture
def clone(lab, monkeypatch):
    (lab.folder / "pyproject.toml").write_text('name = "manyhands"')
    lab.write("labs/90_tiny/90_tiny.ipynb", lab.handed_in(square="raise NotImplementedError()"))
    monkeypatch.setenv("MANYHANDS_ROOT", str(lab.folder))
    return lab


@pytest.mark.parametrize("word", ["90", "90_tiny", "labs/90_tiny", "labs/90_tiny/", "work/90_tiny"])
def test_names_of_a_lab(clone, word):
    own = clone.submit(clone.handed_in())
    assert check_command.find(word, clone.folder) == ("90_tiny", own, "")


def test_paths_of_notebooks(clone):
    own = clone.submit(clone.handed_in())
    other, elsewhere = (
        own.with_name("90_tiny.new.ipynb"),
        clone.folder / "elsewhere" / "homework.ipynb",
    )
    elsewhere.parent.mkdir()
    for path in (other, elsewhere):
        path.write_bytes(own.read_bytes())
    assert check_command.find(str(own), clone.folder)[:2] == ("90_tiny", own)
    assert check_command.find(str(other), clone.folder)[0] == "90_tiny"
    assert check_command.find(str(elsewhere), clone.folder, "90")[0] == "90_tiny"
    with pytest.raises(check_command.UnknownLabError, match="--lab"):
        check_command.find(str(elsewhere), clone.folder)
    elsewhere.unlink()
    with pytest.raises(check_command.UnknownLabError, match="There is no file"):
        check_command.find(str(elsewhere), clone.folder, "90")


def test_released_lab_is_graded_where_there_is_no_copy(clone):
    _unit, path, note = check_command.find("90", clone.folder)
    assert path == clone.folder / "labs/90_tiny/90_tiny.ipynb" and "make lab" in note


def test_unknown_lab_is_told(clone, capsys):
    assert check_command.main(["77"]) == 2
    assert "There is no lab '77'. There are: 90_tiny." in capsys.readouterr().err


def test_exit_codes_and_what_is_remembered(clone, capsys):
    own = clone.submit(clone.handed_in())
    assert check_command.main(["90"]) == 0
    assert "4 of 4 points" in capsys.readouterr().out
    work = clone.folder / "work"
    assert progress.load(work)["90_tiny"]["points"] == 4
    progress.add_hint(work, "90_tiny", "90-square")
    nbformat.write(clone.handed_in(square="return 1"), own)
    assert check_command.main(["90", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["points"] == 2
    entry = progress.load(work)["90_tiny"]
    assert (entry["points"], entry["max"], entry["hints"]) == (2, 4, ["90-square"]) and entry[
        "when"
    ]
    assert sorted(path.name for path in own.parent.iterdir()) == ["90_tiny.ipynb"]


def test_start_page_is_renewed(clone, capsys):
    clone.submit(clone.handed_in())
    page = clone.folder / "work" / "Start_Here.md"
    page.write_text("old")
    assert check_command.main(["90"]) == 0
    assert page.read_text() != "old"


def test_notebook_elsewhere_is_not_remembered(clone, capsys):
    path = clone.write("elsewhere/90_tiny.ipynb", clone.handed_in())
    assert check_command.main([str(path)]) == 0
    assert (
        not (clone.folder / "work").exists()
        and not (clone.folder / "elsewhere" / ".manyhands").exists()
    )


@pytest.fixture
def short_folder():
    """For temporary files: what a killed grader leaves behind goes with it.

    Names of sockets must be short.
    """
    folder = tempfile.mkdtemp(prefix="mh-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("sandboxed", [True, False])
def test_being_stopped_leaves_no_process(clone, how, sandboxed, capsys, request, short_folder):
    if sandboxed:
        request.getfixturevalue("works_in_sandbox")
    clone.submit(clone.handed_in())
    assert check_command.main(["90"]) == 0  # the references of some seeds are there
    clone.submit(clone.handed_in(square="import subprocess; subprocess.run(['sleep', '731'])"))
    arguments = ["check", "90"] + ([] if sandboxed else ["--no-sandbox"])
    process = subprocess.Popen(
        [sys.executable, "-m", "manyhands", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MANYHANDS_ROOT": str(clone.folder), "TMPDIR": short_folder},
        start_new_session=True,
    )
    sleeper = wait_for(
        lambda: next(
            (
                child
                for child in psutil.Process(process.pid).children(recursive=True)
                if "731" in child.cmdline()
            ),
            None,
        )
    )
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(how)
    process.communicate(timeout=20)
    assert sleeper in started
    # nothing can run then: the kernel ends itself, what it started cannot be found
    if not sandboxed and how == signal.SIGKILL:
        started = [child for child in started if child != sleeper]
        sleeper.kill()
    wait_for(
        lambda: (
            not [
                child
                for child in started
                if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
            ]
        ),
        12,
    )
    if how != signal.SIGKILL:
        assert os.listdir(short_folder) == []
        assert process.returncode == (130 if how == signal.SIGINT else 143)


def wait_for(condition, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if result := condition():
                return result
        except psutil.Error:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_table_in_a_notebook(clone, monkeypatch):
    from manyhands.grading import check

    clone.submit(clone.handed_in(square="return 1"))
    shown = check("90")
    assert "90_tiny: 2 of 4 points" in shown._repr_html_() and "2 of 4" in repr(shown)


def test_table_in_a_notebook_says_what_is_wrong(clone, capsys):
    from manyhands.grading import check

    assert check("77") is None
    assert "There is no lab" in capsys.readouterr().out

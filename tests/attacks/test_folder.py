"""What a submission's folder may hold beside the notebook, and in its place.

There are links, pipes, floods, and files that change.
"""

import os
import socket

import pytest
import target

from manyhands.grading import engine, notebooks
from manyhands.grading.notebooks import NotGradedError


@pytest.fixture
def folder(lab):
    return lab.submit(lab.handed_in()).parent


@pytest.fixture
def taken(folder, tmp_path):
    """What the grader takes along of the folder: {name: content}."""

    def taken():
        place = tmp_path / "taken"
        place.mkdir()
        notes = engine.copy_beside(folder / "90_tiny.ipynb", place)
        return notes, {
            path.relative_to(place).as_posix(): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file()
        }

    return taken


def test_a_link_to_the_solution_is_no_submission(lab, attack, tmp_path):
    path = lab.folder / "work" / "90_tiny.ipynb"
    path.parent.mkdir()
    path.symlink_to(lab.solution)
    # it is real
    assert (
        notebooks.nbformat.read(path, as_version=4).cells[2].source == lab.notebook.cells[2].source
    )
    got = attack(path)
    assert got.points == (0, 4) and "link" in got.grade.verdict


@pytest.mark.parametrize("what", ["pipe", "folder", "socket", "device"])
def test_what_is_no_file_is_no_submission(lab, attack, what):
    path = lab.folder / "work" / "90_tiny.ipynb"
    path.parent.mkdir()
    make(path, what)
    got = attack(path)
    assert got.points == (0, 4) and got.grade.verdict


def make(path, what):
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(path.parent)  # a socket's name must be short
            server.bind(path.name)
            os.chdir(here)
    else:
        path.symlink_to("/dev/zero")


def test_links_pipes_and_sockets_beside_the_notebook_are_left(lab, outside, folder, taken):
    (folder / "data.txt").write_text("mine")
    (folder / "gradebook").symlink_to(outside.gradebook)
    (folder / "everything").symlink_to("/")
    (folder / "loop").symlink_to(folder)
    for what in ("pipe", "socket", "device"):
        make(folder / what, what)
    notes, files = taken()
    assert files == {"data.txt": b"mine"} and not notes


@pytest.mark.parametrize(
    "how",
    ["a file becomes a link", "its folder becomes a link", "a file becomes a pipe", "a file grows"],
)
def test_a_file_that_changes_between_being_looked_at_and_being_opened(
    lab, outside, folder, taken, monkeypatch, how
):
    """The worst moment, made sure: the change comes with the call that opens the file."""
    inner, mine = folder / "inner", folder / "inner" / "gradebook.db"
    inner.mkdir()
    mine.write_text("mine")

    def change():
        if how == "its folder becomes a link":
            inner.rename(folder / ".away")
            inner.symlink_to(outside.folder)
        elif how == "a file grows":
            os.truncate(mine, 2**40)
        else:
            mine.unlink()
            mine.symlink_to(outside.gradebook) if how.endswith("link") else os.mkfifo(mine)

    open_now = os.open

    def slow_open(path, flags, *rest, **more):
        if path == mine.name and mine.exists() and not mine.is_symlink():
            monkeypatch.setattr(os, "open", open_now)
            change()
        return open_now(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", slow_open)
    notes, files = taken()
    assert os.open is open_now, "nothing was opened"
    assert target.SECRET.encode() not in files.values()
    assert ("not all" in str(notes)) == (how == "a file grows")
    if how.endswith("link"):
        # who looks first and opens then, by name, would have read this
        assert mine.read_text() == target.SECRET


def test_a_flood_of_files_is_not_taken_along(folder, taken):
    for number in range(4000):
        (folder / f"{number:04}").touch()
    notes, files = taken()
    assert len(files) < 3500 and "not all" in notes[0]


def test_a_hole_of_a_terabyte_is_not_taken_along(folder, taken):
    (folder / "hole").touch()
    os.truncate(folder / "hole", 2**40)
    notes, files = taken()
    assert not files and "not all" in notes[0]


def test_a_notebook_of_a_terabyte_is_not_read(folder):
    os.truncate(folder / "90_tiny.ipynb", 2**40)
    with pytest.raises(NotGradedError, match="larger"):
        notebooks.read(folder / "90_tiny.ipynb")


def test_links_made_while_it_runs_lead_nowhere(lab, attack, outside):
    """In each folder that can be written, with rights that mislead a careless clean-up.

    It would change what they lead to.
    """
    code = f"""
import os
for place in (".", "/tmp", "/dev/shm", os.path.expanduser("~")):
    os.makedirs(f"{{place}}/closed", exist_ok=True)
    for number, there in enumerate(({str(outside.gradebook)!r}, {str(outside.folder)!r}, "/")):
        os.symlink(there, f"{{place}}/closed/{{number}}")
    os.chmod(f"{{place}}/closed", 0)
"""
    notebook = lab.handed_in()
    notebook.cells[1].source += code
    assert attack(notebook).points == (4, 4)


def test_a_course_where_the_sandbox_would_show_its_solutions_is_refused(lab, attack, monkeypatch):
    monkeypatch.setattr(
        "manyhands.isolation.bubblewrap.read_only_folders", lambda: [str(lab.folder)]
    )
    with pytest.raises(RuntimeError, match="could read the solution"):
        attack(lab.handed_in())

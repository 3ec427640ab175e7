"""Reading below a folder whose owner changes it at the worst moment.

Each such moment is tried, one after the other.
"""

import os

import pytest

from manyhands.grading.store import beneath, submissions
from manyhands.grading.store.beneath import Below, FolderEntry
from manyhands.grading.submission_limits import DEPTH

SECRET = "what only the reader may read"
CALLS = ("open", "scandir", "stat", "readlink", "fstat")


def to_link(path, outside):
    os.rename(path, path.with_name("." + path.name))
    path.symlink_to(outside / path.name)


def to_pipe(path, outside):
    os.rename(path, path.with_name("." + path.name))
    os.mkfifo(path)


def to_other(path, outside):
    """A folder becomes a file, a file becomes a folder."""
    folder = path.is_dir()
    os.rename(path, path.with_name("." + path.name))
    path.write_text("a file now") if folder else path.mkdir()


@pytest.fixture
def places(tmp_path):
    """(somebody's folder, a folder of the reader with the same names in it)."""
    for folder, text in (("theirs", "theirs"), ("outside", SECRET)):
        inner = tmp_path / folder / "inner" / "most"
        inner.mkdir(parents=True)
        for place in (inner, inner.parent, inner.parent.parent):
            (place / "file").write_text(text)
    return tmp_path / "theirs", tmp_path / "outside"


@pytest.mark.parametrize("which", ["inner", "inner/most", "inner/most/file", "file"])
@pytest.mark.parametrize("change", [to_link, to_pipe, to_other])
def test_whatever_becomes_something_else_at_whatever_moment_leads_nowhere(
    places, tmp_path, monkeypatch, change, which
):
    theirs, outside = places
    with Below(theirs) as there:
        moments = counted(monkeypatch, -1, None, lambda: copied(there, tmp_path / "first"))
    assert (
        len(moments) > 15
        and (tmp_path / "first" / "inner" / "most" / "file").read_text() == "theirs"
    )
    for moment in range(len(moments)):
        with Below(theirs) as there:
            place = tmp_path / f"{moment}"
            counted(
                monkeypatch,
                moment,
                lambda: change(
                    theirs / which, outside / "inner" if which == "inner/most" else outside
                ),
                lambda place=place: copied(there, place),
            )
            assert SECRET not in [
                path.read_text()
                for path in place.rglob("*")
                if path.is_file() and not path.is_symlink()
            ]
            assert not [
                path
                for path in place.rglob("*")
                if not path.is_symlink() and not path.is_file() and not path.is_dir()
            ]
        (
            (theirs / which).rmdir()
            if change is to_other and (theirs / which).is_dir()
            else (theirs / which).unlink()
        )
        (theirs / which).with_name("." + which.split("/")[-1]).rename(theirs / which)


def copied(there, place):
    place.mkdir()
    submissions.copy(there, place, "file", links=True)


def counted(monkeypatch, moment, change, work):
    """Do the work, with a change before one of the calls that look at a file.

    The change comes before the call of this number. Returns the calls.
    """
    calls = []
    with monkeypatch.context() as patched:
        for name in CALLS:

            def call(*arguments, now=getattr(os, name), **options):  # noqa: B008 - the one of this turn
                if len(calls) == moment:
                    calls.append(now)
                    change()
                else:
                    calls.append(now)
                return now(*arguments, **options)

            patched.setattr(os, name, call)
        work()
    return calls


def test_a_name_that_is_listed_as_a_link_and_as_a_folder_is_one_thing(
    places, tmp_path, monkeypatch
):
    """Else the link would be made first, and the folder's files be written to where it leads."""
    theirs, outside = places
    inside = Below._inside
    monkeypatch.setattr(
        Below,
        "_inside",
        lambda self, folder, most: [
            *([FolderEntry("inner", "link")] if not folder else []),
            *inside(self, folder, most),
        ],
    )
    with Below(theirs) as there:
        monkeypatch.setattr(Below, "link", lambda self, name: str(outside))
        copied(there, tmp_path / "place")
    assert (tmp_path / "place" / "inner").is_symlink() and (outside / "file").read_text() == SECRET
    assert not (outside / "most" / "file").exists()


def test_deep_folders_long_paths_and_floods_end_the_looking_and_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(beneath, "ENTRIES", 300)
    deep, long, flood = (tmp_path / name for name in ("deep", "long", "flood"))
    for folder, name, times in ((deep, "d", 1100), (long, "n" * 255, 8)):
        folder.mkdir()
        here = os.open(folder, os.O_RDONLY)
        for _ in range(times):
            os.mkdir(name, dir_fd=here)
            here, before = os.open(name, os.O_RDONLY, dir_fd=here), here
            os.close(before)
        os.close(here)
    flood.mkdir()
    for number in range(301):
        (flood / f"{number}").mkdir()
    for folder, words in (
        (deep, "/".join(["d"] * (DEPTH + 1))),
        (long, "n" * 255),
        (flood, "more than"),
    ):
        with Below(folder) as there:
            (entry,) = there.files()
            assert entry.kind == "deep" and entry.name.startswith(words)
            (note,) = submissions.copy(there, tmp_path, "file")
            assert "too deep" in note
        assert len(submissions.digest(folder)) == 64
    os.system(f"rm -r {deep}")  # pytest's own way would end in a RecursionError


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_hard_link_to_somebody_elses_file_is_not_taken(places, tmp_path):
    theirs, outside = places
    for path in [theirs, *theirs.rglob("*")]:
        os.chown(path, 4711, 4711)
    os.link(outside / "file", theirs / "mine")
    with Below(theirs, own=True) as there:
        (tmp_path / "place").mkdir()
        assert submissions.copy(there, tmp_path / "place", "file") == [
            "Left out because it could not be read: mine."
        ]
    assert (
        not (tmp_path / "place" / "mine").exists()
        and (tmp_path / "place" / "inner" / "file").read_text() == "theirs"
    )

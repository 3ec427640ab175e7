"""What is read of an entry's folder, and what is no entry."""

import os
import subprocess
import sys

import pytest

from manyhands.hackathon import hack_command
from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.entry.entry_file import MOST_BYTES, BadEntryError, challenge_names, read


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "entry.py").write_text("def train(model, batches, comm):\n    pass\n")
    (tmp_path / "challenge.txt").write_text("slow_links\n")
    return tmp_path


def test_an_entry_is_its_text(folder):
    entry = read(folder, ["slow_links"])
    assert (entry.name, entry.challenge) == (folder.name, "slow_links") and entry.source.startswith(
        "def train"
    )
    (folder / "notes.txt").write_text("x")
    assert read(folder, ["slow_links"]) == entry


def put(path, kind):
    path.unlink()
    if kind == "missing":
        return
    if kind == "a link":
        path.symlink_to("/etc/hostname")
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "long":
        path.write_bytes(b"#" * (MOST_BYTES + 1))
    elif kind == "no text":
        path.write_bytes(b"\xff\xfe")


KINDS = {
    "missing": "is missing",
    "a link": "cannot be read as a plain file",
    "a pipe": "is not a plain file",
    "a folder": "is not a plain file",
    "long": "is longer than 20000 bytes",
    "no text": "is not text in UTF-8",
}


@pytest.mark.parametrize("name", ["entry.py", "challenge.txt"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_text_is_no_entry(folder, name, kind):
    put(folder / name, kind)
    with pytest.raises(BadEntryError, match=f"{name} {KINDS[kind]}"):
        read(folder, ["slow_links"])


def test_who_names_no_challenge_or_no_folder_is_told_what_to_do(folder):
    (folder / "challenge.txt").write_text("slow")
    with pytest.raises(
        BadEntryError, match="names no challenge. There are: slow_links, big_batch."
    ):
        read(folder, ["slow_links", "big_batch"])
    with pytest.raises(BadEntryError, match="is not a folder. `manyhands hack init slow_links"):
        read(folder / "nowhere", ["slow_links"])


def test_an_entry_begins_without_loading_a_framework(tmp_path):
    program = (
        "import sys; from manyhands.hackathon.hack_command import main; code = main(sys.argv[1:]); "
        "print('torch' in sys.modules); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "init", "slow_links", "ours"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "False", (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize("name", challenge_names())
def test_a_new_entry_is_the_baseline_under_the_challenges_title(tmp_path, capsys, name):
    assert hack_command.main(["init", name, str(tmp_path / "ours")]) == 0
    assert f"ours: {CHALLENGES[name].title}. Read " in capsys.readouterr().out
    assert (
        read(tmp_path / "ours", list(CHALLENGES)).source
        == (CHALLENGES[name].folder / "baseline.py").read_text()
    )

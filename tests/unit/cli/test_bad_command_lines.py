"""Every command, given what it cannot use: it answers with a sentence and exit code 2, and changes nothing."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
LIMIT_S = 120
NUMBERS = ["²", "-1", "nan", "", "x", "0x10", "1e999", "9" * 5000, "1.5.2", "\x1b[31m3"]
UNITS = ["²", "0²", "９９", "9" * 5000, "", ".", "/", "..", "\x1b[2Jx", "\udcff", "a" * 5000, "99", "x\ny"]
FILES = ["missing", "\x1b[31mred", "\udcff", "", ".", "a" * 300, "b/" * 3000, "ring", "pipe", "socket", "missing/x", "link"]
OUTPUTS = ["", ".", "missing/x", "a" * 300, "b/" * 3000, "ring", "pipe", "socket", "train.py", "/dev/full"]


def lines():
    """Every command line, as words."""
    yield from ([command] for command in ("check", "clinic", "predict", "rehearse", "adopt", "release", "collect",
                                          "grade", "feedback", "completion"))
    yield from ([command, word] for command in ("check", "release", "collect", "grade", "feedback", "build",
                                                "validate", "slides") for word in UNITS)
    yield from (["export", word] for word in UNITS)
    yield from (["lab", "--copy-only", "--new", word] for word in UNITS)
    yield from ([command, word] for command in ("clinic", "predict", "rehearse", "adopt") for word in FILES)
    yield from (["check", f"{word}.ipynb"] for word in FILES)
    yield from (["check", "there.ipynb", "--lab", word] for word in UNITS)
    for option in ("--timeout", "--cell-timeout"):
        yield from (["check", "90", option, word] for word in NUMBERS)
    for command, option in (("grade", "--jobs"), ("grade", "--timeout"), ("feedback", "--cell-timeout"),
                            ("validate", "--jobs"), ("clinic", "--ranks"), ("clinic", "--timeout"),
                            ("clinic", "--patience"), ("predict", "--ranks"), ("predict", "--to"),
                            ("predict", "--timeout"), ("predict", "--reached"), ("predict", "--times-as-fast"),
                            ("rehearse", "--ranks"), ("rehearse", "--limit")):
        what = "train.py" if command in ("clinic", "predict", "rehearse") else "90"
        yield from ([command, what, option, word] for word in NUMBERS)
    yield from ([command, "train.py", "--output", word] for command in ("clinic", "predict") for word in OUTPUTS)
    yield from (["rehearse", "train.py", "--flight-record", word] for word in ("train.py", "pipe", "a" * 300, "b/" * 3000))
    yield from (["export", "-o", word] for word in OUTPUTS)
    yield from (["predict", "train.py", "--machine", word] for word in UNITS)
    yield from (["release", "90", "--due", word] for word in ["", "soon", "²", "9" * 5000, "0000-01-01", "\x1b[2J"])
    yield from (["grade", "90", "--student", word] for word in UNITS)
    for option in ("--verify", "--new-key"):
        yield from (["certificate", option, word] for word in FILES if word not in ("pipe",) and (option, word) not in FINE)
    yield from (["certificate", "--name", "Ada", "-o", word] for word in OUTPUTS)
    yield from (["certificate", "--attendee", "ada", "--key", word] for word in FILES if word != "pipe")
    yield from (["site", "--output", word] for word in ("train.py", "pipe"))


FINE = {("--new-key", word) for word in ("missing", "\x1b[31mred", "\udcff", "link")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A clone of one small lab, and things with odd names beside it."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "pyproject.toml", folder)
    lab = tiny.Lab(folder)
    for path in ("labs/90_tiny/90_tiny.ipynb", "there.ipynb"):
        lab.write(path, lab.notebook)
    (folder / "sources" / "labs").mkdir(parents=True)
    (folder / "train.py").write_text("open('it_ran', 'w')\n")
    os.symlink("ring", folder / "ring")
    os.symlink("ring.ipynb", folder / "ring.ipynb")
    os.symlink("nowhere/at/all", folder / "link")
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.ipynb")
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(folder)  # a socket's path is short
        made.bind("socket")
        os.chdir(ROOT)
    return folder


def seen(folder):
    """{path: content} of all below a folder, but what commands keep for themselves."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.relative_to(folder).parts[0] not in ("classroom", "work", "cache", "jobs", "results"):
            found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    return found


@pytest.fixture(scope="module")
def answers(place):
    """[(words, answer)], and what was there before and after."""
    words = list(lines())
    before = seen(place)
    jobs = [{"words": line, "cwd": str(place), "limit_s": LIMIT_S} for line in words]
    (place / "jobs").write_text(json.dumps(jobs))
    environment = {**os.environ, "MANYHANDS_ROOT": str(place), "XDG_CACHE_HOME": str(place / "cache")}
    subprocess.run([sys.executable, HERE / "forked_commands.py", place / "jobs", place / "results"], check=True,
                   env=environment, timeout=1200)
    return list(zip(words, json.loads((place / "results").read_text()), strict=True)), before, seen(place)


def test_each_is_answered_with_a_sentence(answers):
    wrong = [(line, answer) for line, answer in answers[0]
             if answer["code"] != 2 or "Traceback" in answer["err"] or not answer["err"].strip()
             or "\x1b" in answer["err"] + answer["out"]]
    assert not wrong, f"{len(wrong)} of {len(answers[0])}:\n" + "\n".join(f"{shown(line)}: {shown(answer)}" for line, answer in wrong)


def shown(value):
    text = repr(value)
    return text if len(text) < 700 else f"{text[:350]} ... {text[-350:]}"


def test_nothing_was_run_and_nothing_has_changed(answers):
    _, before, after = answers
    assert after == before

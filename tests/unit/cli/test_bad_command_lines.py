"""Every command, given what it cannot use.

It answers with a sentence and exit code 2, and changes nothing.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import needs
import tiny
from manyhands.shared import signing

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
LIMIT_S = 120
NUMBERS = ["²", "-1", "nan", "", "x", "0x10", "1e999", "9" * 5000, "1.5.2", "\x1b[31m3"]
UNITS = [
    "²",
    "0²",
    "９９",
    "9" * 5000,
    "",
    ".",
    "/",
    "..",
    "\x1b[2Jx",
    "\udcff",
    "a" * 5000,
    "99",
    "x\ny",
]
FILES = [
    "missing",
    "\x1b[31mred",
    "\udcff",
    "",
    ".",
    "a" * 300,
    "b/" * 3000,
    "ring",
    "pipe",
    "socket",
    "missing/x",
    "link",
]
OUTPUTS = [
    "",
    ".",
    "missing/x",
    "a" * 300,
    "b/" * 3000,
    "ring",
    "pipe",
    "socket",
    "train.py",
    "/dev/full",
]


def lines():
    """Every command line, as words."""
    yield from (
        [command]
        for command in (
            "check",
            "clinic",
            "predict",
            "rehearse",
            "adopt",
            "release",
            "collect",
            "grade",
            "feedback",
            "completion",
        )
    )
    yield from (
        [command, word]
        for command in (
            "check",
            "release",
            "collect",
            "grade",
            "feedback",
            "build",
            "validate",
            "slides",
        )
        for word in UNITS
    )
    yield from (["export", word] for word in UNITS)
    yield from (["lab", "--copy-only", "--new", word] for word in UNITS)
    yield from (
        [command, word] for command in ("clinic", "predict", "rehearse", "adopt") for word in FILES
    )
    yield from (["check", f"{word}.ipynb"] for word in FILES)
    yield from (["check", "there.ipynb", "--lab", word] for word in UNITS)
    for option in ("--timeout", "--cell-timeout"):
        yield from (["check", "90", option, word] for word in NUMBERS)
    for command, option in (
        ("grade", "--jobs"),
        ("grade", "--timeout"),
        ("feedback", "--cell-timeout"),
        ("validate", "--jobs"),
        ("clinic", "--ranks"),
        ("clinic", "--timeout"),
        ("clinic", "--patience"),
        ("predict", "--ranks"),
        ("predict", "--to"),
        ("predict", "--timeout"),
        ("predict", "--reached"),
        ("predict", "--times-as-fast"),
        ("rehearse", "--ranks"),
        ("rehearse", "--limit"),
    ):
        what = "train.py" if command in ("clinic", "predict", "rehearse") else "90"
        yield from ([command, what, option, word] for word in NUMBERS)
    yield from (
        [command, "train.py", "--output", word]
        for command in ("clinic", "predict")
        for word in OUTPUTS
    )
    yield from (
        ["rehearse", "train.py", "--flight-record", word]
        for word in ("train.py", "pipe", "a" * 300, "b/" * 3000)
    )
    yield from (["export", "-o", word] for word in OUTPUTS)
    yield from (["predict", "train.py", "--machine", word] for word in UNITS)
    yield from (
        ["release", "90", "--due", word]
        for word in ["", "soon", "²", "9" * 5000, "0000-01-01", "\x1b[2J"]
    )
    yield from (["grade", "90", "--student", word] for word in UNITS)
    for option in ("--verify", "--new-key"):
        yield from (
            ["certificate", option, word]
            for word in FILES
            if word not in ("pipe",) and (option, word) not in FINE
        )
    yield from (["certificate", "--name", "Ada", "-o", word] for word in OUTPUTS)
    yield from (
        ["certificate", "--attendee", "ada", "--key", word] for word in FILES if word != "pipe"
    )
    yield from (["site", "--output", word] for word in ("train.py", "pipe"))
    yield from (["hack", "init", word, "new"] for word in UNITS)
    yield from (
        ["hack", "init", "big_batch", word]
        for word in ("", ".", "train.py", "pipe", "a" * 300, "b/" * 3000, "ring")
    )
    yield from (["hack", "try", word] for word in FILES)
    yield from (["hack", "try", "train.py", "--runs", word] for word in NUMBERS)
    yield from (["hack", "judge", word, "--key", "judge.key"] for word in FILES)
    yield from (["hack", "verify", word] for word in FILES if word != "pipe")
    yield from (
        ["hack", "event", word] for word in ("", "train.py", "pipe", "a" * 300, "b/" * 3000, "ring")
    )
    yield from (["hack", "run", word, "--key", "judge.key"] for word in FILES)
    yield from (
        ["hack", "look", word, "1", "--by", "x", "--key", "judge.key", "--counts"] for word in FILES
    )
    yield from (["hack", "board", word] for word in FILES if word not in ("", "."))  # this folder
    yield from (["hack", "submit", word, "--event", "missing", "--team", "x"] for word in FILES)
    yield from (["hack", "status", "--event", word, "--team", "x"] for word in FILES)
    yield from (["hack", "withdraw", word, "--event", "missing", "--team", "x"] for word in NUMBERS)
    yield from (["accounts", "create", word, "--expires", "1d"] for word in NUMBERS)
    yield from (
        ["accounts", "create", "1", "--expires", word]
        for word in [*NUMBERS, "99999999w", "0000-01-01", "1y"]
    )
    yield from (["accounts", "import", word, "--expires", "1d"] for word in FILES)
    yield from (
        ["accounts", command, word] for command in ("reset", "revoke", "restore") for word in UNITS
    )
    for option in (
        "--port",
        "--servers-port",
        "--cpus",
        "--memory",
        "--processes",
        "--disk",
        "--tidy-up",
        "--places",
        "--gpus",
        "--idle",
    ):
        yield from (["hub", option, word] for word in NUMBERS)
    yield from (["hub", "--certificate", word, "--key", word] for word in FILES if word)


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
    signing.new_key(folder / "judge.key")
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
    contents = {}
    for path in sorted(folder.rglob("*")):
        if path.relative_to(folder).parts[0] not in (
            "classroom",
            "work",
            "cache",
            "jobs",
            "results",
        ):
            contents[str(path)] = (
                path.read_bytes() if path.is_file() and not path.is_symlink() else None
            )
    return contents


@pytest.fixture(scope="module")
def answers(place):
    """[(words, answer)], and what was there before and after."""
    words = list(lines())
    before = seen(place)
    return (
        list(zip(words, run(place, [{"words": line} for line in words]), strict=True)),
        before,
        seen(place),
    )


def run(place, jobs):
    """The answers of commands in this clone, one after the other."""
    (place / "jobs").write_text(
        json.dumps([{"cwd": str(place), "limit_s": LIMIT_S, **job} for job in jobs])
    )
    environment = {
        **os.environ,
        "MANYHANDS_ROOT": str(place),
        "XDG_CACHE_HOME": str(place / "cache"),
    }
    subprocess.run(
        [sys.executable, HERE / "forked_commands.py", place / "jobs", place / "results"],
        check=True,
        env=environment,
        timeout=1200,
    )
    return json.loads((place / "results").read_text())


def test_each_is_answered_with_a_sentence(answers):
    wrong = [
        (line, answer)
        for line, answer in answers[0]
        if answer["code"] != 2
        or "Traceback" in answer["err"]
        or not answer["err"].strip()
        or "\x1b" in answer["err"] + answer["out"]
    ]
    assert not wrong, f"{len(wrong)} of {len(answers[0])}:\n" + "\n".join(
        f"{shown(line)}: {shown(answer)}" for line, answer in wrong
    )


def shown(value):
    text = repr(value)
    return text if len(text) < 700 else f"{text[:350]} ... {text[-350:]}"


def test_nothing_was_run_and_nothing_has_changed(answers):
    _, before, after = answers
    assert after == before


BROKEN = [
    "",
    "{",
    "[1]",
    "3",
    "\0" * 100,
    "[" * 100_000,
    '{"90_tiny": ' * 100_000,
    *(
        f'{{"90_tiny": {{"{key}": {value}}}}}'
        for key in ("points", "max", "when", "hints", "seen", "predictions")
        for value in ("null", '"x"', "NaN", "[[]]", '{"a": {}}', "1e999")
    ),
]


def test_a_broken_progress_file_stops_no_command_and_is_kept(place):
    """`lab` makes the start page; `check` writes the result.

    `check` keeps aside what it could not read.
    """
    (answer,) = run(place, [{"words": ["lab", "--copy-only"]}])
    assert answer["code"] == 0
    file = place / "work" / ".manyhands" / "progress.json"
    answers = run(
        place,
        [{"words": ["lab", "--copy-only"], "writes": [str(file), content]} for content in BROKEN],
    )
    for content, answer in zip(BROKEN, answers, strict=True):
        assert (answer["code"], "Traceback" in answer["err"]) == (0, False), (
            content[:80],
            answer["err"][-500:],
        )
    assert file.read_text() == BROKEN[-1]
    (answer,) = run(place, [{"words": ["check", "work/90_tiny/90_tiny.ipynb"]}])
    assert answer["code"] in (0, 1) and "Traceback" not in answer["err"]
    broken = [path.read_text() for path in file.parent.glob("progress.broken*.json")]
    assert json.loads(file.read_text())["90_tiny"]["max"] == 4 and broken == [BROKEN[-1]]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_may_not_be_entered_is_named(place):
    nobody = 65534
    for words in (
        ["check", "90"],
        ["lab", "--copy-only"],
        ["certificate"],
        ["export"],
        ["adopt", "there.ipynb"],
    ):
        (answer,) = run(place, [{"words": words, "uid": nobody}])
        assert (
            answer["code"] == 2
            and "Permission denied" in answer["err"]
            and "Traceback" not in answer["err"]
        ), answer


def test_a_full_disk_is_named_and_leaves_no_half_a_table(place):
    needs.program("unshare", "util-linux")
    small = place / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=4k tmpfs {small} && cd {place} && exec {sys.executable} -m "
        "manyhands export -o small/grades.csv"
    )
    (small.parent / "filled").write_bytes(b"x" * 4096)
    script = script.replace("&& cd", f"&& cp {place}/filled {small}/filler && cd")
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "MANYHANDS_ROOT": str(place)},
    )
    assert (
        done.returncode == 2
        and "No space left on device" in done.stderr
        and "Traceback" not in done.stderr
    ), done

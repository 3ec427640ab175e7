"""CONTRIBUTING.md names only commands and files that are there, and all tags."""

import re
from pathlib import Path

import pytest

from manyhands.authoring.text import TAGS
from manyhands.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
CODE = re.findall(r"`([^`\n]+)`", TEXT) + re.findall(r"^(make .*?)(?:  .*)?$", TEXT, re.M)


def test_targets_and_commands_exist():
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.M)
    named = {code.split()[1] for code in CODE if code.startswith("make ")}
    assert named and named <= set(targets)
    commands = {code.split()[1] for code in CODE if code.startswith("manyhands ")}
    assert commands and commands <= set(COMMANDS)


def test_files_exist():
    named = {
        code
        for code in CODE
        if "/" in code and " " not in code and "NN" not in code and "<" not in code
    }
    assert len(named) > 10
    assert [name for name in named - {".venv/bin"} if not (ROOT / name).exists()] == []


def test_the_table_of_tags_is_complete():
    assert re.findall(r"^\| `([\w-]+)` \|", TEXT, re.M) == [
        "measured",
        "raises-exception",
        "setup",
        "solution",
        "check",
    ]
    assert set(TAGS) == {"measured", "raises-exception", "setup", "solution", "check"}


def map_rows():
    """(what one wants to change, its files, the names in them) of each row of "Where to look"."""
    start = TEXT.index("| to change | open |")
    for line in TEXT[start : TEXT.index("\n\n", start)].splitlines()[2:]:
        wish, answer = line.strip("| ").split(" | ", 1)
        folder, files, names = "", [], []
        # a file "in `folder/`" is joined to it below
        for code in re.findall(r"`([^`]+)`(?! in `\S+/`)", answer):
            if code.startswith(("python -m", "make ")):
                continue
            if "/" in code or re.search(r"\.(py|md|css|js|toml|txt|html)$", code):
                files.append(code if (ROOT / code).exists() else folder + code)
                folder = files[-1][: files[-1].rfind("/") + 1]
            else:
                names.append(code)
        files += [place + file for file, place in re.findall(r"`(\S+)` in `(\S+/)`", answer)]
        yield wish, (files, names)


MAP = dict(map_rows())


def test_the_map_has_its_rows():
    assert len(MAP) > 60 and sum(len(files) for files, _ in MAP.values()) > 150


@pytest.mark.parametrize("wish", MAP)
def test_each_file_and_name_of_the_map_exists(wish):
    files, names = MAP[wish]
    assert [path for path in files if not (ROOT / path).exists()] == []
    texts = [(ROOT / path).read_text() for path in files if (ROOT / path).is_file()]
    for name in names:
        last = name.rpartition(".")[2]
        assert any(re.search(rf"\b{re.escape(last)}\b", text) for text in texts), (
            f"none of {files} defines {name}"
        )

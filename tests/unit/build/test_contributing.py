"""CONTRIBUTING.md names only commands and files that are there, and all tags."""

import re
from pathlib import Path

from manyhands.build.text import TAGS
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
    named = {code for code in CODE if "/" in code and " " not in code and "NN" not in code and "<" not in code}
    assert len(named) > 10
    assert [name for name in named - {".venv/bin"} if not (ROOT / name).exists()] == []


def test_the_table_of_tags_is_complete():
    assert re.findall(r"^\| `([\w-]+)` \|", TEXT, re.M) == ["measured", "raises-exception", "setup", "solution", "check"]
    assert set(TAGS) == {"measured", "raises-exception", "setup", "solution", "check"}

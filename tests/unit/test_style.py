"""The style that pyproject.toml asks for, `[tool.ruff]`: ruff's layout and its rules."""

import io
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100


def ruff(*words):
    program = needs.search("ruff", os.path.dirname(sys.executable))
    program = program or needs.lacking("ruff", "make setup")
    return subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    "words",
    [("check", "--output-format", "concise"), ("format", "--check")],
    ids=lambda words: words[0],
)
def test_ruff_finds_nothing(words):
    run = ruff(*words, "--no-cache", "--quiet")
    assert run.returncode == 0, run.stdout + run.stderr


def long_lines(text):
    """Return the numbers of the lines that are too long.

    The text of a string does not count.
    """
    numbers = {
        n
        for n, line in enumerate(text.split("\n"), 1)
        if len(line) > WIDTH and "  # noqa" not in line
    }
    begun = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # from Python 3.12 on, an f-string is many tokens
            begun.append(token)
        elif kind in ("STRING", "FSTRING_END"):
            first = begun.pop() if kind == "FSTRING_END" else token
            alone = not first.line[: first.start[1]].strip() and not token.string.endswith('"""')
            if (
                token.end[0] > first.start[0] or alone
            ):  # of several lines, or with no space to break it at
                numbers -= set(range(first.start[0], token.end[0] + 1))
    return sorted(numbers)


def test_lines_are_short():
    """These are the lines that ruff's E501 finds.

    Texts do not count, nor do programs whose first line says what is expected. The sources' text
    cells are comments, and the build limits their lines of code.
    """
    names = [
        name for name in ruff("check", "--show-files").stdout.splitlines() if name.endswith(".py")
    ]
    files = [
        Path(name) for name in names if not {"rehearsal_programs", "sources"} & {*Path(name).parts}
    ]
    by_file = {path.relative_to(ROOT).as_posix(): long_lines(path.read_text()) for path in files}
    assert not {name: lines for name, lines in by_file.items() if lines}


def test_of_long_lines_only_texts_are_left_out():
    long = "x = " + " + ".join(["one"] * 30)
    text = (
        "a = f'{1}"
        + "a" * 100
        + "'\n"
        + long
        + "\nb = (\n    f'{1}"
        + "a" * 100
        + "'\n)\nc = '''\n"
        + long
        + "\n'''\n# "
        + long
    )
    assert long_lines(text) == [1, 2, 9]

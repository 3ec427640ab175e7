"""Command lines of `manyhands`: parsers of one look, with examples, and completion by the shell.

The shell's completion is argcomplete's.
"""

import argparse
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

COMPLETING = "_ARGCOMPLETE"  # set by the shell while it asks what could be typed next
LONGEST_SHOWN = 200  # characters of a path in a message
YEAR_S = 365 * 24 * 3600


def parser(
    command: str, description: str, examples: Sequence[str] = (), **options: Any
) -> argparse.ArgumentParser:
    """Make the parser of `manyhands COMMAND`.

    `examples` are what can be typed behind the command, shown at the end of its help.
    """
    lines = "\n".join(f"  manyhands {command} {example}".rstrip() for example in examples)
    epilog = "\n\n".join(filter(None, [options.pop("epilog", ""), lines and f"examples:\n{lines}"]))
    return _Parser(
        prog=f"manyhands {command}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )


P = TypeVar("P", bound=argparse.ArgumentParser)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(printable(re.sub(rf"(\S{{{LONGEST_SHOWN}}})\S+", r"\1...", message)))


def seconds(text: str) -> float:
    """Read an option that is a time: a number of seconds, more than 0 and no more than a year.

    It is a `type` for argparse.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number <= YEAR_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds: give a number above 0, such as 300"
        )
    return number


def whole(text: str) -> int:
    """Read an option that is a count: a whole number, 0 or more and below a million.

    It is a `type` for argparse.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count: give a whole number, such as 4")
    return int(text)


def completed(made: P) -> P:
    """Return the same parser, ready for the shell's completion.

    Where the shell asks what could be typed next, it is answered, and this process ends.
    """
    if COMPLETING in os.environ:
        import argcomplete

        argcomplete.autocomplete(made)
    return made


def scripts_own(argv: list[str]) -> tuple[list[str], list[str]]:
    """(the command's own arguments, those that stand behind `--` and are a script's)."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def no_script(path: str | Path) -> str | None:
    """Why `path` cannot be run as a script, and what to do, or None if it is a file."""
    if os.path.isfile(path):
        return None
    if os.path.isdir(path):
        return f"{path} is a folder: name the script in it that you start with torchrun."
    return f"there is no file {path} in {os.getcwd()}: name an existing script."


def printable(text: object) -> str:
    r"""Return `text` with each character that a terminal would obey as its escape (`\x1b`).

    Each half of a letter is escaped, too.
    """
    return "".join(
        (
            letter
            if letter.isprintable() or letter in "\n\t"
            else letter.encode("unicode_escape").decode()
        )
        for letter in str(text)
    )


def refuse(command: str, problem: object) -> int:
    """Say on stderr why `manyhands COMMAND` cannot do what was typed; returns its exit code, 2."""
    print(f"manyhands {command}: {printable(problem)}", file=sys.stderr)
    return 2


def in_words(problem: OSError) -> str:
    """An error of the operating system as a sentence that names the file."""
    names = [
        os.fsdecode(name)
        for name in (problem.filename, problem.filename2)
        if isinstance(name, (str, bytes))
    ]
    where = " and ".join(
        name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}..." for name in names
    )
    return f"{problem.strerror or problem}{f': {where}' if where else ''}."


def no_output_file(path: str | Path, made_by: str | None) -> str | None:
    """Why `path` cannot be written as an output, and what to do; None if it can.

    Only a file that bears the mark `made_by` is ever overwritten; with the mark None, no file is.
    """
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        return f"--output {path}: name a file in an existing folder."
    if made_by is None and os.path.lexists(path):
        return f"{path} exists already, and nothing is overwritten. Name another file."
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return (
            f"--output {path}: you are not allowed to write there. Name a file in one of your "
            "folders."
        )
    if not path.exists() and not path.is_symlink():
        return None
    if not path.is_file():
        return f"--output {path} is not a regular file. Name a new file."
    with open(path, "rb") as file:
        head = file.read(2000)
    if not head or (made_by is not None and made_by.encode() in head):
        return None
    return f"{path} exists and was not written by this command. Name another file with --output."


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Inside, SIGTERM ends the process as `sys.exit(143)` does.

    So what a command has started is ended, too. Use it around a block, or above the function of a
    command: `@sigterm_exits()`.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Line:
    """One line on a terminal, each text in the place of the one before.

    On another stream, `show` shows nothing.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.width = stream, 0
        self.live = stream.isatty()

    def show(self, text: str) -> None:
        """What goes on now."""
        if self.live:
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
            self.stream.flush()

    def clear(self) -> None:
        """Empty the line, if something is shown."""
        if self.live and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0


@contextmanager
def working(text: str, stream: TextIO | None = None) -> Iterator[Line]:
    """Say on a terminal (stderr) what the block does, as long as it does it.

    Gives the `Line`, which can say more.
    """
    line = Line(stream or sys.stderr)
    line.show(f"{text} ...")
    try:
        yield line
    finally:
        line.clear()


@contextmanager
def part(text: str, stream: TextIO | None = None) -> Iterator[None]:
    """Say on stderr that a part of a command's work is under way.

    Afterwards, say how long it took.
    """
    stream, start = stream or sys.stderr, time.monotonic()
    if stream.isatty():
        print(f"{text} ...", file=stream, flush=True)
    yield
    print(f"{text}, {time.monotonic() - start:.0f} s", file=stream, flush=True)


def unit_names(**_: object) -> list[str]:
    """What completes the name of a unit."""
    from manyhands.units import NotACloneError, units

    try:
        return [unit.name for unit in units()]
    except NotACloneError:
        return []


def python_files(prefix: str, **_: object) -> list[str]:
    """What completes the path of a script."""
    import argcomplete

    return argcomplete.completers.FilesCompleter(["py"])(prefix)


def unit_names_and_notebooks(prefix: str, **_: object) -> list[str]:
    """What completes the name of a unit, or the path of a notebook."""
    import argcomplete

    return [*unit_names(), *argcomplete.completers.FilesCompleter(["ipynb"])(prefix)]

"""Command lines of `manyhands`: parsers of one look, with examples, and completion by the shell (argcomplete)."""

import argparse
import os
import signal
import sys
from contextlib import contextmanager

COMPLETING = "_ARGCOMPLETE"  # set by the shell while it asks what could be typed next


def parser(command, description, examples=(), **options):
    """The parser of `manyhands COMMAND`; `examples` are what can be typed behind the command,
    shown at the end of its help."""
    lines = "\n".join(f"  manyhands {command} {example}".rstrip() for example in examples)
    epilog = "\n\n".join(filter(None, [options.pop("epilog", ""), lines and f"examples:\n{lines}"]))
    return argparse.ArgumentParser(prog=f"manyhands {command}", description=description, epilog=epilog,
                                   formatter_class=argparse.RawDescriptionHelpFormatter, **options)


def completed(made):
    """The same parser; where the shell asks what could be typed next, it is answered, and this process ends."""
    if COMPLETING in os.environ:
        import argcomplete

        argcomplete.autocomplete(made)
    return made


def scripts_own(argv):
    """(the command's own arguments, those that stand behind `--` and are a script's)."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1:]


def no_script(path):
    """Why `path` cannot be run as a script, and what to do, or None if it is a file."""
    if os.path.isfile(path):
        return None
    if os.path.isdir(path):
        return f"{path} is a folder: name the script in it that you start with torchrun."
    return f"there is no file {path} in {os.getcwd()}: name a script that is there."


def printable(text):
    """`text` with each character that a terminal would obey, and each half of a letter, as its escape (`\\x1b`)."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
                   for letter in str(text))


@contextmanager
def sigterm_exits():
    """Inside, SIGTERM ends the process as `sys.exit(143)` does, so that what a command has started is ended, too.
    Around a block, or above the function of a command: `@sigterm_exits()`."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Line:
    """One line on a terminal, each text in the place of the one before; on another stream `show` shows nothing."""

    def __init__(self, stream):
        self.stream, self.width = stream, 0
        self.live = stream.isatty()

    def show(self, text):
        """What goes on now."""
        if self.live:
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
            self.stream.flush()

    def clear(self):
        if self.live and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0


@contextmanager
def working(text, stream=None):
    """Say on a terminal (stderr) what the block does, as long as it does it; gives the `Line`, which can say more."""
    line = Line(stream or sys.stderr)
    line.show(f"{text} ...")
    try:
        yield line
    finally:
        line.clear()


def unit_names(**_):
    """What completes the name of a unit."""
    from manyhands.units import NotAClone, units

    try:
        return [unit.name for unit in units()]
    except NotAClone:
        return []


def python_files(prefix, **_):
    """What completes the path of a script."""
    import argcomplete

    return argcomplete.completers.FilesCompleter(["py"])(prefix)


def unit_names_and_notebooks(prefix, **_):
    """What completes the name of a unit, or the path of a notebook."""
    import argcomplete

    return [*unit_names(), *argcomplete.completers.FilesCompleter(["ipynb"])(prefix)]

"""The `manyhands` command: a table of subcommands, each imported when it is called."""

from __future__ import annotations

import difflib
import os
import platform
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


GROUPS = {
    "Learners": {
        "lab": ("manyhands.cli.lab:main", "open the course in JupyterLab"),
        "check": ("manyhands.cli.check:main", "grade a lab"),
        "rehearse": (
            "manyhands.rehearsal.rehearse_command:main",
            "predict on a CPU what NCCL would do with a script",
        ),
        "hack": (
            "manyhands.hackathon.hack_command:main",
            "the hackathon: begin an entry, try it, and have it judged",
        ),
        "certificate": (
            "manyhands.cli.certificate:main",
            "make a certificate of your points, or verify one",
        ),
        "doctor": ("manyhands.cli.doctor:main", "report what this machine can do"),
        "completion": (
            "manyhands.cli.completion:main",
            "print what a shell needs to complete these commands",
        ),
    },
    "Teams": {
        "clinic": (
            "manyhands.clinic.clinic_command:main",
            "check your own training script: is it right, does it hang?",
        ),
        "predict": (
            "manyhands.clinic.predict_command:main",
            "predict a step of your own script on many ranks of a different machine",
        ),
    },
    "Instructors": {
        "release": (
            "manyhands.grading.classroom.class_commands:release",
            "release labs, so that attendees can fetch them",
        ),
        "collect": (
            "manyhands.grading.classroom.class_commands:collect",
            "collect what was handed in",
        ),
        "grade": ("manyhands.grading.classroom.class_commands:grade", "grade what was collected"),
        "feedback": (
            "manyhands.grading.classroom.class_commands:feedback",
            "make a feedback page for each attendee",
        ),
        "export": ("manyhands.grading.classroom.class_commands:export", "export all grades as CSV"),
        "hub": ("manyhands.hub.hub_command:main", "start a JupyterHub for a class"),
        "accounts": (
            "manyhands.hub.accounts.accounts_command:main",
            "create, list and end trial accounts",
        ),
    },
    "Maintainers": {
        "build": (
            "manyhands.authoring.command:main",
            "build notebooks, solutions and labs from their sources",
        ),
        "adopt": (
            "manyhands.authoring.command:adopt",
            "write an edited notebook back to its source",
        ),
        "validate": (
            "manyhands.authoring.command:validate",
            "run notebooks and compare every output",
        ),
        "slides": ("manyhands.authoring.command:slides", "build the decks as HTML and PDF"),
        "site": ("manyhands.website.site_command:main", "build the course as a web site"),
    },
}
# in the environment: show where an error of the operating system was raised
TRACEBACK = "MANYHANDS_TRACEBACK"
# of `Path.resolve`, which raises a RuntimeError for links in a ring up to Python 3.12
LOOP = "Symlink loop"
# set by the shell while it asks what could be typed next, see command_line.py
_COMPLETING = "_ARGCOMPLETE"
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def usage() -> str:
    """Return the list of all commands in their groups, as `manyhands --help` prints it."""
    width = max(map(len, COMMANDS))
    lines = ["usage: manyhands COMMAND [options]"]
    for group, commands in GROUPS.items():
        lines += [
            "",
            f"{group}:",
            *(f"  manyhands {name:<{width}}  {text}" for name, (_, text) in commands.items()),
        ]
    return "\n".join(
        [
            *lines,
            "",
            (
                "`manyhands COMMAND --help` lists the options of a command and shows examples, and "
                "`manyhands --version` prints the version."
            ),
        ]
    )


def version() -> str:
    """Return the line that `manyhands --version` prints."""
    from importlib.metadata import version as version_of

    return f"manyhands {version_of('manyhands')} (Python {platform.python_version()})"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; returns its exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        # a name that is not UTF-8 is shown with its bytes, and stops nothing
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if _COMPLETING in os.environ:
        argv = _typed_so_far()
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        print(version())
        return 0
    if argv[0] not in COMMANDS:
        print(
            f"manyhands: unknown command {argv[0]!r}.{_meant(argv[0])}\n\n{usage()}",
            file=sys.stderr,
        )
        return 2
    module, function = COMMANDS[argv[0]][0].split(":")
    environment = import_module("manyhands.own_environment")
    if argv[0] in environment.COMMANDS and not {"-h", "--help", _COMPLETING} & {*argv, *os.environ}:
        if lack := environment.lacking():
            return import_module("manyhands.command_line").refuse(argv[0], lack)
        for note in environment.notes():
            print(f"manyhands {argv[0]}: {note}", file=sys.stderr)
    try:
        return getattr(import_module(module), function)(argv[1:])
    except KeyboardInterrupt:  # of a command that has nothing more to say about it
        print(f"\nmanyhands {argv[0]}: stopped.", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # `manyhands export | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except ModuleNotFoundError as problem:
        if TRACEBACK in os.environ or (problem.name or "").startswith("manyhands"):
            raise
        return import_module("manyhands.command_line").refuse(
            argv[0],
            f"The package {problem.name} is not installed for {sys.executable}. Install it there "
            "with pip, or run `make setup` in a clone of the course, which installs all packages, "
            "and use the command of the clone.",
        )
    except (OSError, RuntimeError) as problem:
        # a path, a disk or a permission that a command did not foresee
        if TRACEBACK in os.environ or not (isinstance(problem, OSError) or LOOP in str(problem)):
            raise
        return _refused_by_the_system(argv[0], problem)


def _refused_by_the_system(command: str, problem: OSError | RuntimeError) -> int:
    command_line = import_module("manyhands.command_line")
    reason = command_line.in_words(problem) if isinstance(problem, OSError) else f"{problem}."
    return command_line.refuse(
        command,
        f"{reason} Check this path, your permissions and the free space, then run the command "
        f"again. ({TRACEBACK}=1 shows where it happened.)",
    )


def _meant(word: str) -> str:
    """Did you mean ...?"""
    near = difflib.get_close_matches(word.lower(), COMMANDS, n=1)
    return f" Did you mean `manyhands {near[0]}`?" if near else ""


def _typed_so_far() -> list[str]:
    """Return the command whose parser completes what is typed.

    While the command itself is typed, this process ends with the commands.
    """
    words = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].split(" ")
    if len(words) > 2 and words[1] in COMMANDS:
        os.environ[_COMPLETING] = "2"  # the command's parser begins at the second word
        return words[1:2]
    import argparse

    commands = argparse.ArgumentParser(add_help=False)
    commands.add_argument("command", choices=list(COMMANDS))
    commands.add_argument("--version", action="store_true")
    commands.add_argument("--help", action="store_true")
    import_module("manyhands.command_line").completed(commands)
    return []

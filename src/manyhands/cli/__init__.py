"""The `manyhands` command: a table of subcommands, each imported when it is called."""

import sys
from importlib import import_module

COMMANDS = {
    "lab": ("manyhands.cli.lab:main", "open the course in JupyterLab"),
    "doctor": ("manyhands.cli.doctor:main", "say what this machine can do"),
    "check": ("manyhands.cli.check:main", "grade a lab, for the learner"),
    "release": ("manyhands.grading.classroom.class_commands:release", "a class: put labs where attendees fetch them"),
    "collect": ("manyhands.grading.classroom.class_commands:collect", "a class: take in what was handed in"),
    "grade": ("manyhands.grading.classroom.class_commands:grade", "a class: grade what was collected"),
    "feedback": ("manyhands.grading.classroom.class_commands:feedback",
                 "a class: give each attendee a page about their work"),
    "export": ("manyhands.grading.classroom.class_commands:export", "a class: all grades as CSV"),
    "hub": ("manyhands.hub.hub_command:main", "start a JupyterHub for a class"),
    "accounts": ("manyhands.hub.accounts.accounts_command:main", "trial accounts: make, list, end"),
    "build": ("manyhands.build.command:main", "sources -> notebooks, solutions, labs"),
    "adopt": ("manyhands.build.command:adopt", "write an edited notebook back to its source"),
    "validate": ("manyhands.build.command:validate", "run notebooks and compare every output"),
    "slides": ("manyhands.build.command:slides", "make the decks: HTML and PDF"),
}


def usage():
    width = max(map(len, COMMANDS))
    lines = [f"  manyhands {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return (
        "usage: manyhands COMMAND [options]\n\n"
        + "\n".join(lines)
        + "\n\n`manyhands COMMAND --help` tells the options of one."
    )


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if argv[0] not in COMMANDS:
        print(f"manyhands: there is no command {argv[0]!r}\n\n{usage()}", file=sys.stderr)
        return 2
    module, function = COMMANDS[argv[0]][0].split(":")
    return getattr(import_module(module), function)(argv[1:])

"""Which tests need no second run, because what they depend on is as it was when they last passed.

This is remembered for this machine only. It is for the tests of mutants, the most expensive ones,
in `make test` of a developer's clone (MANYHANDS_UNCHANGED=skip). CI runs everything.
"""

import hashlib
import os
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / ".manyhands" / "passed"
REASON = (
    "passed before, and nothing that it depends on has changed (make test MANYHANDS_UNCHANGED=run "
    "runs it again)"
)
NOT_BELOW = ("hub", "cli")  # rooms that neither a lab nor its checks can reach
NAMED = re.compile(r"manyhands\.checks(?:\.| import )(\w+)")


def wanted():
    """Whether unchanged tests are left out in this run."""
    return (
        os.environ.get("MANYHANDS_UNCHANGED") == "skip"
        and os.environ.get("MANYHANDS_NO_SKIPS") != "1"
    )


def checks_named(text, folder):
    """The names in `folder` (manyhands.checks) that a text imports, directly or through others."""
    names, todo = set(), set(NAMED.findall(text))
    while todo:
        name = todo.pop()
        names.add(name)
        for path in [folder / f"{name}.py", *sorted((folder / name).glob("*.py"))]:
            if path.is_file():
                todo |= set(NAMED.findall(path.read_text())) - names
    return names


def depends_on(unit, root=ROOT):
    """The files that decide how a unit's mutants end.

    They are its solution, its checks, the package below them, the tests, and the pinned versions.
    """
    package, solution = root / "src" / "manyhands", root / "solutions" / unit
    checks = checks_named((solution / f"{unit}.ipynb").read_text(), package / "checks")

    def counts(path):
        parts = path.relative_to(package).parts
        return parts[0] not in NOT_BELOW and (
            parts[0] != "checks" or len(parts) == 2 or parts[1] in checks
        )

    below = [
        path
        for path in package.rglob("*")
        if path.suffix in (".py", ".json", ".toml") and counts(path)
    ]
    beside = [
        path
        for path in solution.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__")) for part in path.parts)
    ]
    return sorted(
        [*below, *beside, *(root / "tests" / "labs").glob("*.py"), root / "constraints.txt"]
    )


@cache
def digest_of_unit(unit, root=ROOT):
    state = hashlib.sha256(sys.version.encode())
    for path in depends_on(unit, root):
        state.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def digest(unit, file=None, root=ROOT):
    """Changes with all that the test of one mutant (its `file`), or of a whole unit, depends on."""
    return digest_of_unit(unit, root) + (
        hashlib.sha256(file.read_bytes()).hexdigest() if file else ""
    )


def known(name, state):
    """Whether the test called so has passed in this state."""
    path = PASSED / name.replace("/", "--")
    return path.is_file() and path.read_text() == state


def remember(name, state):
    PASSED.mkdir(parents=True, exist_ok=True)
    (PASSED / name.replace("/", "--")).write_text(state)

"""What mypy finds with `[tool.mypy]` of pyproject.toml: nothing, except in the packages of the
table, whose numbers may only fall.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import needs
from manyhands.toml import loads

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "manyhands"
# How many errors a package has, or a module that is in none. What is not here has none, and stays
# so.
ERRORS = {
}
PARTS = sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
STRICT = [
    module
    for part in loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"][
        "overrides"
    ]
    if part.get("disallow_untyped_defs")
    for module in part["module"]
]


@pytest.fixture(scope="module")
def found():
    """{path below src/manyhands: its lines with errors}; one run for all tests, of 25 s where mypy
    has no cache yet.
    """
    needs.package("mypy", remedy="make test")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-pretty", "--no-color-output", "--hide-error-context"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (
        re.search(r"\(checked \d+ source files\)$|^Success: ", run.stdout.strip(), re.M)
        and not run.stderr
    ), run.stdout[-2000:] + run.stderr
    errors = {}
    for line in run.stdout.splitlines():
        if ": error: " in line:
            errors.setdefault(Path(line.split(":")[0]).relative_to("src/manyhands"), []).append(
                line
            )
    return errors


@pytest.mark.parametrize("part", PARTS)
def test_a_package_has_as_many_errors_as_the_table_says(part, found):
    lines, allowed = (
        [line for path in found if path.parts[0] == part for line in found[path]],
        ERRORS.get(part, 0),
    )
    shown = "\n".join(lines)
    if len(lines) > allowed:
        pytest.fail(
            f"{part} has {len(lines)} errors, and {allowed} are allowed. Mend what is "
            f"new:\n{shown}",
            pytrace=False,
        )
    if len(lines) < allowed:
        pytest.fail(
            f"{part} has only {len(lines)} errors left. In ERRORS of tests/unit/test_types.py, "
            f"lower its number from {allowed} to "
            f"{len(lines)}{' (take its row out)' if not lines else ''}, so that it does not rise "
            f"again.\n{shown}",
            pytrace=False,
        )


@pytest.mark.parametrize("module", STRICT)
def test_what_learners_open_has_none(module, found):
    where = Path(*module.removeprefix("manyhands.").removesuffix(".*").split("."))
    lines = [
        line
        for path in found
        if where in (path, path.with_suffix(""), *path.parents)
        for line in found[path]
    ]
    assert (PACKAGE / where).is_dir() or (PACKAGE / where).with_suffix(".py").is_file(), (
        f"pyproject.toml names {module}, which does not exist"
    )
    if lines:
        pytest.fail(
            f"{module} is strict, because learners open it, and has {len(lines)} errors:\n"
            + "\n".join(lines),
            pytrace=False,
        )


def test_the_table_names_what_exists_and_has_errors():
    assert set(ERRORS) <= set(PARTS)
    assert all(number > 0 for number in ERRORS.values())

"""Learners' copies of labs and tutorials import four modules by the names of version 0.1."""

import subprocess
import sys

import pytest

# the lines of version 0.1's notebooks, and what they import today
LINES = {
    "from manyhands.checks import dataparallel as check": "manyhands.checks.torch_dataparallel",
    "from manyhands.checks import communication_costs_cases as check": (
        "manyhands.checks.communication_costs.cases"
    ),
    "from manyhands.checks.collectives_ranks import WAYS as check": (
        "manyhands.checks.collectives.ranks.WAYS"
    ),
    "from manyhands.checks import large_batches_task as check": (
        "manyhands.checks.large_batches.task"
    ),
    "from manyhands.checks.large_batches_task import Task as check": (
        "manyhands.checks.large_batches.task.Task"
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_an_older_copy_imports_the_module_of_today_and_warns(line):
    program = (
        "import pkgutil, sys, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always', DeprecationWarning)\n"
        f"    {line}\n"
        "seen = [w for w in caught if 'is now called' in str(w.message)]\n"
        "assert [w.category for w in seen] == [DeprecationWarning], seen\n"
        "assert seen[0].filename == '<string>', seen[0].filename\n"
        f"assert check is pkgutil.resolve_name({LINES[line]!r})\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        import manyhands.checks.never_was  # noqa: F401

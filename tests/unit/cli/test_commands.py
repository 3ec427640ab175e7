"""The Makefile and the CI files.

Every target does what it says, and nothing names a registry or a machine.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from manyhands import repository
from manyhands.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
SETUP = [
    "Makefile",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    ".ci/run",
    ".github/workflows/test.yml",
    ".github/workflows/site.yml",
]


def dry_run(*words):
    """What make would run, without running it."""
    done = subprocess.run(
        [shutil.which("make"), "-n", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if "bootstrap.py" in line]


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["lab", "ARGS=--no-browser"], "run --horovod-later manyhands lab --no-browser"),
        (
            ["test", "ARGS=-k launch"],
            "run --with dev pytest -n 3 --dist loadfile --no-loadscope-reorder -k launch",
        ),
        (["site", "ARGS=--output there"], "run --with dev manyhands site --output there"),
        (
            ["coverage", "ARGS=tests/unit"],
            (
                "run --with dev tests.coverage_run -n 3 --dist loadfile --no-loadscope-reorder "
                "tests/unit"
            ),
        ),
        (["setup"], "setup"),
        (["offline"], "offline"),
        (["build", "NB=06_ddp"], "run manyhands build 06_ddp"),
        (["adopt", "NB=notebooks/06_ddp.ipynb"], "run manyhands adopt notebooks/06_ddp.ipynb"),
        (["bench"], "run benchmarks"),
        (["test-gpu"], "run pytest -m gpu"),
        (["doctor"], "run --horovod-later manyhands doctor"),
    ],
)
def test_targets(words, ends):
    (line,) = dry_run(*words)
    assert re.sub(r" +", " ", line).strip().endswith(ends)


def test_check_goes_from_the_cheapest_to_the_dearest():
    build, unit, validate = dry_run("check", "NB=06_ddp")
    assert (
        "manyhands build --check --no-execute 06_ddp" in build
        and "pytest" in unit
        and "manyhands validate 06_ddp" in validate
    )


def test_every_manyhands_command_of_the_makefile_exists():
    named = set(re.findall(r"manyhands (\w+)", re.sub(r"#.*", "", (ROOT / "Makefile").read_text())))
    assert named and named <= set(COMMANDS)


def test_without_python_make_says_so(tmp_path):
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = subprocess.run(
        [shutil.which("make"), "setup"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        env={"PATH": str(tmp_path)},
    )
    assert done.returncode != 0 and "install Python 3.11" in done.stdout


@pytest.mark.parametrize("name", SETUP)
def test_no_registry_and_no_machine_is_named(name):
    # the course's own
    text = (
        (ROOT / name).read_text().replace(repository.address(ROOT), "").replace("https://${{", "")
    )
    assert not re.search(r"https?://", text) and not re.search(
        r"(?<![\w.])/(work|opt|root|tmp/w)/", text
    )


def test_github_runs_the_same_as_a_maintainer():
    job = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["cpu"]
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    script = (ROOT / ".ci/run").read_text()
    assert "export MANYHANDS_NO_SKIPS=1" in script and "make test" in script
    assert subprocess.run(["bash", "-n", ROOT / ".ci/run"], timeout=10).returncode == 0


def test_help_lists_every_target_in_the_groups_of_the_commands():
    listed = subprocess.run(
        [shutil.which("make"), "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    targets = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[
        1
    ].split()
    assert {line.split()[1] for line in listed.splitlines() if line.startswith("  make ")} == set(
        targets
    ) - {"python3"}
    groups = [line for line in listed.splitlines() if line and not line.startswith(" ")]
    commands = subprocess.run(
        [sys.executable, "-m", "manyhands", "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout.splitlines()
    assert groups and [line for line in commands if line in groups] == groups

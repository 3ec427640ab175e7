"""What a contributor meets first.

The hooks run what CI runs, and the papers lead to this repository.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

import needs
from manyhands import repository

ROOT = Path(__file__).resolve().parents[2]
HOOKS = {
    hook["id"]: hook
    for hook in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
}
PAPERS = [
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    ".github/ISSUE_TEMPLATE/config.yml",
    ".github/PULL_REQUEST_TEMPLATE.md",
]


def in_git(folder):
    """Return the environment in which ROOT is a git repository, whoever owns it.

    It is its own repository, or, where the files came without one, a new one in `folder`.
    """
    environ = os.environ | {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    if not (ROOT / ".git").exists():
        environ |= {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(ROOT)}
        for words in (("init", "-q"), ("add", "-A")):
            subprocess.run(["git", *words], cwd=ROOT, env=environ, check=True)
    return environ | {"GIT_OPTIONAL_LOCKS": "0"}


def test_the_hooks_pass_and_fetch_nothing(tmp_path_factory):
    """The drift and the types have tests of their own."""
    needs.package("pre_commit", remedy="make test")
    home = tmp_path_factory.mktemp("home")
    environ = in_git(tmp_path_factory.mktemp("git"))
    environ |= {"PRE_COMMIT_HOME": str(home), "SKIP": "drift,mypy"}
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "ruff check" in done.stdout, done.stdout + done.stderr
    assert not [path.name for path in home.iterdir() if path.is_dir()], "an environment was made"


def test_each_hook_runs_a_program_of_the_environment():
    assert set(HOOKS) == {"ruff-check", "ruff-format", "mypy", "drift"}
    for hook in HOOKS.values():
        assert hook["language"] == "system" and hook["entry"].startswith(".venv/bin/"), hook
        program = Path(sys.executable).parent / Path(hook["entry"].split()[0]).name
        assert program.exists() or program.name == "mypy", f"make test: {program}"


def test_the_hooks_look_where_their_subjects_are():
    drift = re.compile(HOOKS["drift"]["files"])
    assert all(
        drift.search(path)
        for path in (
            "sources/labs/06_ddp.py",
            "notebooks/06_ddp.ipynb",
            "README.md",
            "src/manyhands/units.toml",
        )
    )
    assert re.compile(HOOKS["mypy"]["files"]).search("src/manyhands/data.py")


def test_the_papers_lead_to_the_repository_that_pyproject_names():
    """OWNER is replaced in one place, and this says where else."""
    named = {
        (paper, address)
        for paper in PAPERS
        for address in re.findall(
            r"https://github\.com/[\w.-]+/[\w.-]+", (ROOT / paper).read_text()
        )
    }
    assert {address for _, address in named} == {repository.address(ROOT)}, sorted(named)


def test_what_the_papers_name_exists():
    for paper in (ROOT / name for name in PAPERS):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", paper.read_text()):
            assert (paper.parent / target).exists(), f"{paper.name}: {target}"
        for path in re.findall(r"`((?:\.github|docs|tests)/[\w./-]+)`", paper.read_text()):
            assert (ROOT / path).exists(), f"{paper.name}: {path}"

"""The workflows for GitHub.

What they run is fixed by hash, they may do no more than they need, and a tag is checked.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
USES = re.compile(r"^\s*-?\s*uses:\s*(\S+)(?:\s+(#.*))?$", re.MULTILINE)


def uses():
    return [(path.name, *use) for path in WORKFLOWS for use in USES.findall(path.read_text())]


def test_every_action_is_pinned_by_a_hash_with_its_version():
    """A tag can be moved to different code; a hash cannot."""
    assert len(uses()) == sum(path.read_text().count("uses:") for path in WORKFLOWS) > 10
    loose = [
        (file, action)
        for file, action, comment in uses()
        if not (
            re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
            and re.fullmatch(r"# v\d+(\.\d+)*", comment)
        )
    ]
    assert loose == []


def test_an_action_has_one_version():
    pins = {}
    for _, action, comment in uses():
        pins.setdefault(action.partition("@")[0], set()).add((action, comment))
    assert [pin for pin in pins.values() if len(pin) > 1] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_what_its_token_may_do(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"]["contents"] == "read"
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def step(job, start):
    [match] = [
        step for step in RELEASE["jobs"][job]["steps"] if step.get("name", "").startswith(start)
    ]
    return match["run"]


@pytest.mark.parametrize(
    ("tag", "heading", "says"),
    [
        ("v1.2.3", "## 1.2.3 - 2026-01-31", ""),
        ("v1.2.4", "## 1.2.3 - 2026-01-31", "The tag is v1.2.4, and pyproject.toml has 1.2.3."),
        ("1.2.3", "## 1.2.3 - 2026-01-31", "The tag is 1.2.3, and pyproject.toml has 1.2.3."),
        ("v1.2.3", "## 1.2.3 - unreleased", "CHANGELOG.md has no dated heading for 1.2.3."),
        ("v1.2.3", "## 1.2.2 - 2026-01-31", "CHANGELOG.md has no dated heading for 1.2.3."),
    ],
)
def test_a_tag_that_is_not_the_version_releases_nothing(tmp_path, tag, heading, says):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "manyhands"\nversion = "1.2.3"  # here\n'
    )
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n{heading}\n\n* A line.\n")
    done = subprocess.run(
        ["bash", "-e", "-c", step("build", "The tag")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | {"GITHUB_REF_NAME": tag},
    )
    assert done.returncode == bool(says) and done.stdout.strip() == says, done.stderr


def test_nothing_is_released_that_was_not_installed_and_used():
    jobs = RELEASE["jobs"]
    assert (
        jobs["attach"]["needs"] == jobs["publish"]["needs"] == "test"
        and jobs["test"]["needs"] == "build"
    )
    assert "make test-wheel" in step("test", "Install")
    assert "password" not in str(jobs) and "secrets." not in str(jobs), "PyPI trusts the workflow"
    writes = {name for name, job in jobs.items() if "write" in str(job.get("permissions"))}
    assert writes == {"attach", "publish"}

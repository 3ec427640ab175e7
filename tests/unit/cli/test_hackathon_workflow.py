"""The workflow for a hackathon by pull requests: what it may do, and its shell.

The shell is run here with a `manyhands` that writes down what it is asked.
"""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

WORKFLOW = yaml.safe_load(
    (Path(__file__).parents[3] / ".github/workflows/hackathon.yml").read_text()
)
ASKED = """#!/bin/bash
echo "$@" >> "$ASKED"
env | grep -c '^KEY=' >> "$ASKED.env"
case "$2 $3" in *bad*) exit 1;; *broken*) exit 2;; esac
if [ "$2" = judge ]; then echo record > "$7"; elif [ "$2" = board ]; then mkdir -p board; fi
"""


def script(job, name):
    return next(step["run"] for step in WORKFLOW["jobs"][job]["steps"] if step.get("name") == name)


def test_a_pull_request_gets_no_secret_and_a_token_that_only_reads():
    assert "pull_request_target" not in str(WORKFLOW) and WORKFLOW["permissions"] == {
        "contents": "read"
    }
    tries, judges = WORKFLOW["jobs"]["try"], WORKFLOW["jobs"]["judge"]
    assert (
        "permissions" not in tries
        and "secrets" not in str(tries)
        and tries["if"] == "github.event_name == 'pull_request'"
    )
    assert judges["if"] == "github.event_name == 'push'" and judges["permissions"] == {
        "contents": "write"
    }
    checkouts = [step["with"] for step in tries["steps"] if "checkout" in step.get("uses", "")]
    assert all(checkout["persist-credentials"] is False for checkout in checkouts)
    # whose code judges
    assert (
        checkouts[0]["ref"] == "${{ github.event.pull_request.base.sha }}"
        and "path" not in checkouts[0]
    )
    # no text of others in a shell
    assert "${{" not in script("try", "Try the entries of a pull request") + script(
        "judge", "Judge what was merged"
    )


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def shell(tmp_path):
    """Runs a step's script in a folder with a `manyhands`: (exit code, the calls, what it said)."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/manyhands").write_text(ASKED)
    (tmp_path / ".venv/bin/manyhands").chmod(0o755)
    asked = tmp_path / "asked"

    def run(text, **environment):
        asked.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "ASKED": str(asked)} | environment,
        )
        return done.returncode, asked.read_text().splitlines(), done.stdout + done.stderr

    return run


def entry(folder, name, text="def train(): pass\n"):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "entry.py").write_text(text)
    (folder / name / "challenge.txt").write_text("slow_links\n")


def test_each_changed_entry_of_a_pull_request_is_tried_and_one_that_fails_stops_no_other(
    shell, tmp_path
):
    brought = tmp_path / "brought"
    for name in ("old", "gone"):
        entry(brought / "entries", name)
    git(brought, "init", "-q")
    git(brought, "add", "-A")
    git(brought, "commit", "-q", "-m", "base")
    git(brought, "rm", "-q", "-r", "entries/gone")
    for name in ("bad", "the rings", "$(touch oops);`touch oops`", "line\nend", "zed"):
        entry(brought / "entries", name)
    (brought / "Makefile").write_text("setup:\n\ttouch oops\n")
    git(brought, "add", "-A")
    git(brought, "commit", "-q", "-m", "theirs")
    code, asked, output = shell(script("try", "Try the entries of a pull request"))
    assert code == 1 and len(asked) == 6  # one name has a line end
    assert [line for line in asked if line.startswith("hack try brought/entries/")] == [
        f"hack try brought/entries/{name}"
        for name in ("$(touch oops);`touch oops`", "bad", "line", "the rings", "zed")
    ]
    assert not list(tmp_path.rglob("oops")), output


def test_what_was_merged_is_judged_once_and_kept_and_the_key_goes(shell, tmp_path):
    text, there = script("judge", "Judge what was merged"), tmp_path / "records"
    subprocess.run(["git", "init", "-q", "--bare", "origin"], cwd=tmp_path, check=True)
    subprocess.run(
        ["git", "clone", "-q", "origin", "records"], cwd=tmp_path, check=True, capture_output=True
    )
    git(there, "commit", "-q", "--allow-empty", "-m", "empty")
    git(there, "push", "-q", "origin", "HEAD")
    code, asked, output = shell(text, TMPDIR=str(tmp_path))
    assert code == 1 and asked == [] and "HACKATHON_KEY" in output
    for name in ("bad", "ours", "the rings"):
        entry(tmp_path / "entries", name)
    (tmp_path / "entries" / "link").mkdir()
    (tmp_path / "entries" / "link" / "entry.py").symlink_to("/etc/hostname")
    keys = {"KEY": "secret", "PUBLIC": "public", "TMPDIR": str(tmp_path)}
    code, asked, output = shell(text, **keys)
    assert code == 0, output
    assert [line.split(" --key")[0] for line in asked] == [
        "hack judge entries/bad/",
        "hack judge entries/ours/",
        "hack judge entries/the rings/",
        asked[3],
    ] and asked[3].startswith("hack board records --public ")
    # nobody has it in the environment
    assert set((tmp_path / "asked.env").read_text().split()) == {"0"}
    assert "secret" not in output and not list(tmp_path.glob("tmp.*"))
    log = subprocess.run(
        ["git", "log", "--name-only", "--format=", "-1"],
        cwd=tmp_path / "origin",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len(log.splitlines()) == 2 and "ours-" in log and "the rings-" in log
    code, asked, _ = shell(text, **keys)
    # what has a record is not judged again
    assert code == 0 and len(asked) == 2 and "entries/bad/" in asked[0]
    (tmp_path / "entries" / "ours" / "challenge.txt").write_text("big_batch\n")
    entry(tmp_path / "entries", "broken")
    code, asked, _ = shell(text, **keys)
    assert code == 1 and [line.split(" --key")[0] for line in asked[:3]] == [
        "hack judge entries/bad/",
        "hack judge entries/broken/",
        "hack judge entries/ours/",
    ]
    assert (
        subprocess.run(
            ["git", "log", "--oneline"],
            cwd=tmp_path / "origin",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.count("\n")
        == 3
    )

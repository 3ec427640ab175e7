"""The service `lab`: one person's JupyterLab."""

import json
import re
import subprocess
import urllib.request

import pytest
from engines import wait_for

pytestmark = pytest.mark.containers


def address(engine, project, service):
    """(the published address, the token that the course has printed)."""
    printed = wait_for(
        lambda: re.search(r"token=(\w+)", engine.compose(project, "logs", "--no-color", service))
    )
    return engine.compose(project, "port", service, "8888").strip(), printed[1]


def test_lab_answers_and_a_learner_can_check_their_work(engine, cpu, project):
    engine.compose(project, "--profile", "lab", "up", "--detach", "lab")
    where, token = address(engine, project, "lab")
    assert where.startswith("127.0.0.1:")
    with urllib.request.urlopen(
        f"http://{where}/api/contents/work?token={token}", timeout=60
    ) as answer:
        names = {entry["name"] for entry in json.load(answer)["content"]}
    assert {"Start_Here.ipynb", "06_ddp", "06_ddp_tutorial.ipynb"} <= names or any(
        name.startswith("Start_Here") for name in names
    ), names
    checked = subprocess.run(
        engine.command(project, "exec", "-T", "lab", "manyhands", "check", "00"),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert "Graded with" in checked.stdout, checked.stdout + checked.stderr

"""Tests that lack something of the machine.

Those of containers fail for a person who asks for them, and are left out otherwise.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_container_tests(*options, path):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *options,
        "tests/containers/test_images.py",
    ]
    environment = {**os.environ, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


def test_who_asks_for_the_tests_of_containers_is_told_all_that_is_missing(tmp_path):
    done = run_container_tests("-m", "containers", path=str(tmp_path))
    assert done.returncode == 4 and done.stderr.count("ERROR") == 1, done.stdout
    for package in ("docker.io", "docker-compose", "podman"):
        assert f" {package} " in done.stderr.split("apt-get install")[1]


def test_a_container_test_that_nobody_asked_for_is_left_out(tmp_path):
    done = run_container_tests(path=str(tmp_path))
    assert done.returncode == 5 and "8 deselected" in done.stdout

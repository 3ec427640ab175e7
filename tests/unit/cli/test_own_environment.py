"""The three commands in a user's environment: what they import.

Also what is said of an environment that lacks something.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[3] / "src"
COMMANDS = ("clinic", "rehearse", "predict")


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The Python of an environment without any package."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def run(python, *words, cwd):
    return subprocess.run(
        [python, "-m", "manyhands", *words],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        cwd=cwd,
        capture_output=True,
        text=True,
    )


def installed(python, name, version):
    """Make it look as if this package was installed."""
    folder = next(python.parents[1].glob("lib/*/site-packages"))
    for old in folder.glob(f"{name}*"):
        old.rename(folder / f"_{old.name}")
    (folder / name).mkdir()
    (folder / f"{name}-{version}.dist-info").mkdir()
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )


def test_what_an_environment_lacks_is_said_in_a_sentence_before_anything_runs(empty, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')")
    for command in COMMANDS:
        done = run(empty, command, "train.py", cwd=tmp_path)
        assert (
            done.returncode == 2
            and done.stderr.startswith(
                f"manyhands {command}: PyTorch is not installed for {empty}."
            )
            and done.stdout == ""
        )
    assert "open the page in the browser" in run(empty, "clinic", "--help", cwd=tmp_path).stdout
    installed(empty, "torch", "2.5.1+cu121")
    assert (
        run(empty, "clinic", "train.py", cwd=tmp_path).stderr
        == "manyhands clinic: This environment has PyTorch 2.5.1+cu121, and 2.6 or later is "
        "needed.\n"
    )
    installed(empty, "torch", "2.10.0")
    assert (
        run(empty, "predict", "train.py", cwd=tmp_path).stderr
        == f"manyhands predict: matplotlib, numpy and psutil are not installed for {empty}: pip "
        'install "manyhands[clinic]" installs what is needed.\n'
    )
    done = run(empty, "check", "06", cwd=tmp_path)
    assert (
        done.returncode == 2
        and "is not installed for" in done.stderr
        and "`make setup`" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_the_commands_import_nothing_that_only_the_course_needs(empty, tmp_path):
    """In the process of the command; on the ranks tests/clinic/test_predict.py looks."""
    modules = [
        "clinic.clinic_command",
        "clinic.visit",
        "clinic.conclude",
        "clinic.page",
        "clinic.plain_page",
        "clinic.predict_command",
        "clinic.scale",
        "clinic.rank_program",
        "clinic.observe",
        "rehearsal.rehearse_command",
        "rehearsal.on_rank_of_script",
        "simulate.machines",
        "plots.step_lanes",
    ]
    numpy = "import types, sys; sys.modules['numpy'] = types.ModuleType('numpy')\n"
    program = numpy + "".join(f"import manyhands.{module}\n" for module in modules)
    done = subprocess.run(
        [empty, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr

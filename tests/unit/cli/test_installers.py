"""uv and pip against an index on this machine: each installs from it, by pip's own settings."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from manyhands.cli import offline
from manyhands.cli.installers import INSTEAD, WITHOUT, Installer
from manyhands.cli.setup_steps import StepFailed, Steps

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def index(tmp_path):
    """A simple index with one package, `tiny` 1.0."""
    folder = tmp_path / "index" / "tiny"
    folder.mkdir(parents=True)
    info = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "answer = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    (folder / "index.html").write_text(
        '<a href="tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'
    )
    return folder.parent.as_uri()


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """An empty environment; made once, since its pip takes seconds."""
    made = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    return made


@pytest.fixture
def installer(tmp_path, index, empty):
    """For a copy of the empty environment; all that pip is told of indexes is this one."""
    shutil.copytree(empty, tmp_path / "venv", symlinks=True)
    told = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "MANYHANDS_"))
    }
    told |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_NO_CONFIG": "1",
    }
    steps = Steps(1, tmp_path / "log", io.StringIO())
    steps.begin("packages")
    return Installer(tmp_path / "venv" / "bin" / "python", told, steps, ROOT)


def answer(installer):
    return subprocess.run(
        [installer.python, "-c", "import tiny; print(tiny.answer)"], capture_output=True, text=True
    ).stdout.strip()


def who(installer):
    return (
        next(installer.python.parents[1].glob("lib/*/site-packages/tiny-1.0.dist-info/INSTALLER"))
        .read_text()
        .strip()
    )


def test_uv_takes_the_index_that_pip_was_told(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    installer.install("tiny==1.0")
    assert (answer(installer), who(installer)) == ("42", "uv")


def test_uv_asks_the_ordinary_index_where_another_cannot_be_reached(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    # nobody listens at port 9
    installer.install("tiny==1.0", only_uv=["--default-index", "http://127.0.0.1:9/simple"])
    assert (answer(installer), who(installer)) == ("42", "uv")
    shown = installer.steps.stream.getvalue()
    assert WITHOUT.partition("{")[0] in shown and INSTEAD.partition("(")[0] + "(" not in shown


def test_pip_does_where_uv_fails(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    installer.environ["UV_DEFAULT_INDEX"] = "http://127.0.0.1:9/simple"  # for uv alone
    installer.install("tiny==1.0")
    assert (answer(installer), who(installer)) == ("42", "pip")
    assert INSTEAD.partition("(")[0] in installer.steps.stream.getvalue()


def test_pip_does_where_uv_cannot_be_had(installer):
    installer.get_uv()
    installer.install("tiny==1.0")
    assert not installer.uv.exists() and (answer(installer), who(installer)) == ("42", "pip")
    assert "the package index does not have uv==" in installer.steps.stream.getvalue()


@pytest.mark.parametrize("by", ["uv", "pip"])
def test_a_folder_that_was_carried_here_is_all_that_is_asked(installer, tmp_path, index, by):
    """pip was told of an index where nobody is."""
    (tmp_path / "carried").mkdir()
    shutil.copytree(tmp_path / "index" / "tiny", tmp_path / "carried" / "wheels")
    installer.environ |= {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        **offline.settings(tmp_path / "carried"),
    }
    if by == "uv":
        shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    installer.install("tiny==1.0")
    assert (
        answer(installer),
        who(installer),
        installer.steps.stream.getvalue().count("could not"),
    ) == ("42", by, 0)


def test_what_neither_can_install_is_told(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    with pytest.raises(StepFailed, match="the package index does not have huge"):
        installer.install("huge==1.0")

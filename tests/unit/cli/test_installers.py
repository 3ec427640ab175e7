"""uv against an index on this machine: it installs from there, by pip's own settings."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from manyhands.cli import offline
from manyhands.cli.installers import WITHOUT, Installer
from manyhands.cli.setup_steps import StepFailedError, Steps

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
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "MANYHANDS_"))
    }
    environ |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_NO_CONFIG": "1",
    }
    steps = Steps(1, tmp_path / "log", io.StringIO())
    steps.begin("packages")
    return Installer(tmp_path / "venv" / "bin" / "python", environ, steps, ROOT)


def answer(installer):
    return subprocess.run(
        [installer.python, "-c", "import tiny; print(tiny.answer)"], capture_output=True, text=True
    ).stdout.strip()


def test_uv_takes_the_index_that_pip_was_told(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    installer.install("tiny==1.0")
    assert answer(installer) == "42"


def test_uv_asks_the_ordinary_index_where_another_cannot_be_reached(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    # nobody listens at port 9
    installer.install("tiny==1.0", first=["--default-index", "http://127.0.0.1:9/simple"])
    assert answer(installer) == "42"
    assert WITHOUT.partition("{")[0] in installer.steps.stream.getvalue()


def test_an_index_without_uv_is_told(installer):
    installer.environ["PATH"] = str(installer.uv.parent)
    with pytest.raises(StepFailedError, match="the package index does not have uv==") as stop:
        installer.install("tiny==1.0")
    assert "no uv on PATH" in stop.value.why and "PIP_FIND_LINKS" in stop.value.remedy
    assert not answer(installer)


def test_an_index_without_uv_and_a_uv_on_path(installer):
    installer.environ["PATH"] = str(Path(sys.executable).parent)
    installer.install("tiny==1.0")
    assert not installer.uv.exists() and answer(installer) == "42"
    assert f"so {Path(sys.executable).parent / 'uv'} is used" in installer.steps.stream.getvalue()


def test_a_folder_that_was_carried_here_is_all_that_is_asked(installer, tmp_path):
    """pip was told of an index where nobody is."""
    (tmp_path / "carried").mkdir()
    shutil.copytree(tmp_path / "index" / "tiny", tmp_path / "carried" / "wheels")
    installer.environ |= {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        **offline.settings(tmp_path / "carried"),
    }
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    installer.install("tiny==1.0")
    assert answer(installer) == "42" and "could not" not in installer.steps.stream.getvalue()


@pytest.mark.parametrize(
    ("name", "why"), [("huge", "does not have huge"), ("tiny", "does not have tiny==9")]
)
def test_what_the_index_does_not_have_is_told(installer, name, why):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    with pytest.raises(StepFailedError, match=f"the package index {why}"):
        installer.install(f"{name}==9")


def test_an_index_that_cannot_be_reached_is_told(installer):
    shutil.copy(Path(sys.executable).parent / "uv", installer.uv)
    installer.environ |= {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    with pytest.raises(StepFailedError, match="there is no network"):
        installer.install("tiny==1.0")

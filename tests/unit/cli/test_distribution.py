"""What is released: the sdist and the wheel.

They have all that the package needs and one version, and work outside a clone.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

import distribution

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
SUFFIXES = {".pyc", ".pyo"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return distribution.build(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    """The wheel as pip would lay it out, in an otherwise empty folder."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(folder)
    return folder


def test_the_names_have_the_version(built):
    assert [path.name for path in built] == [
        f"manyhands-{VERSION}.tar.gz",
        f"manyhands-{VERSION}-py3-none-any.whl",
    ]


def test_the_wheel_has_every_file_of_the_package_with_the_same_content(unpacked):
    """Data, pages, challenges and py.typed are included.

    It is built from the sdist, so that has them as well.
    """
    source = {
        path.relative_to(ROOT / "src"): path.read_bytes()
        for path in (ROOT / "src" / "manyhands").rglob("*")
        if path.is_file() and path.suffix not in SUFFIXES
    }
    wheel = {
        path.relative_to(unpacked): path.read_bytes()
        for path in (unpacked / "manyhands").rglob("*")
        if path.is_file()
    }
    assert sorted(source.keys() ^ wheel.keys()) == []
    assert [path for path in source if source[path] != wheel[path]] == []
    assert sorted(path.name for path in unpacked.iterdir()) == [
        "manyhands",
        f"manyhands-{VERSION}.dist-info",
    ]


def test_the_sdist_has_the_package_its_licences_and_nothing_of_the_clone(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2].partition("/")[0] for name in archive.getnames()}
    assert names - {""} == {
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "LICENSE-TEXT",
        "MANIFEST.in",
        "PKG-INFO",
        "README.md",
        "constraints.txt",
        "pyproject.toml",
        "setup.cfg",
        "src",
    }


def test_the_metadata_says_what_the_project_says(unpacked):
    stated = message_from_bytes(next(unpacked.glob("*.dist-info/METADATA")).read_bytes())
    assert stated["Version"] == VERSION and stated["Name"] == "manyhands"
    assert set(stated.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    core = [text for text in stated.get_all("Requires-Dist") if "extra ==" not in text]
    assert {re.match(r"[\w-]+", text)[0] for text in core} == {
        re.match(r"[\w-]+", text)[0] for text in PROJECT["dependencies"]
    }
    assert set(stated.get_all("License-File")) == {"LICENSE", "LICENSE-TEXT"}
    assert (
        "manyhands = manyhands.cli:main"
        in next(unpacked.glob("*.dist-info/entry_points.txt")).read_text()
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-c", "import manyhands; print(manyhands.__file__)"], "{unpacked}/manyhands/__init__.py"),
        (["-m", "manyhands", "--version"], f"manyhands {VERSION} (Python "),
        (["-m", "manyhands", "--help"], "manyhands clinic"),
        (["-m", "manyhands", "doctor"], f"manyhands {VERSION} on "),
        (["-m", "manyhands", "doctor"], "`make setup` in a clone of it"),
    ],
)
def test_with_python_alone_the_first_commands_work(unpacked, tmp_path, words, says):
    """No package at all is installed here (-S), and no clone is near."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(unpacked),
        "HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-S", *words],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and says.format(unpacked=unpacked) in done.stdout, (
        done.stdout + done.stderr
    )
    assert "Traceback" not in done.stderr


def test_a_command_says_what_it_lacks_there(unpacked, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit('it ran')")
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(unpacked),
        "HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-S", "-m", "manyhands", "clinic", "train.py"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode == 2
        and "PyTorch is not installed for" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_every_place_has_the_one_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    extension = ROOT / "src/manyhands/learner/labextensions/manyhands-lab/package.json"
    assert yaml.safe_load(extension.read_text())["version"] == VERSION


def test_the_newest_heading_of_the_changes_is_this_version_and_the_citation_has_its_date():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version, _, date = headings[0].partition(" - ")
    assert version == VERSION and re.fullmatch(r"\d{4}-\d\d-\d\d", date), headings[0]
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["date-released"]) == date
    versions = [heading.partition(" - ")[0] for heading in headings]
    assert versions == sorted(
        versions, key=lambda text: tuple(map(int, text.split("."))), reverse=True
    )

"""The lists of packages against each other: requirements.txt, constraints.txt, environment.yml, pyproject.toml, and what is installed."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from manyhands.cli import setup_plan
from manyhands.cli.pythons import PYTHONS

ROOT = Path(__file__).resolve().parents[3]
ASKED = setup_plan.read_pins(ROOT / "requirements.txt")
PINS = setup_plan.read_pins(ROOT / "constraints.txt")
SITE = setup_plan.read_pins(ROOT / "requirements-site.txt")
CUDA = setup_plan.read_pins(ROOT / "constraints-cuda.txt")
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
FROM_CONDA = dict(re.match(r"([a-z0-9-]+)=?(.*)", line).groups() for line in CONDA["dependencies"])


def test_every_line_is_an_exact_pin():
    for name in ("requirements.txt", "constraints.txt", "constraints-cuda.txt", "requirements-site.txt"):
        lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
        loose = [line for line in lines if line and not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)]
        assert loose == [], name


def test_what_is_asked_for_is_in_the_whole_list_with_the_same_version():
    assert {name: PINS.get(name) for name in ASKED} == ASKED


def test_the_whole_list_is_whole():
    """Step 4 installs without dependencies, so every dependency must be a pin: what is not there would be missed at import."""
    missing, todo, seen = set(), list(ASKED), set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker and not needed.marker.evaluate({"extra": ""}):
                continue
            child = canonicalize_name(needed.name)
            if child in CUDA:
                continue  # a CUDA build: step 3 installs these
            if (name, child) == ("tf-keras", "tensorflow"):
                child = "tensorflow-cpu"
            if child not in PINS:
                missing.add(f"{name} needs {child}")
                continue
            assert PINS[child] in SpecifierSet(str(needed.specifier), prereleases=True), f"{name} needs {text}"
            todo.append(child)
    assert missing == set()


def test_what_is_installed_is_what_is_pinned():
    installed = {name: metadata.version(name).partition("+")[0] for name in PINS if name not in FROM_CONDA}
    assert installed == {name: version for name, version in PINS.items() if name in installed}


def test_every_pin_runs_on_debians_python():
    """Debian 12 has Python 3.11.2; some packages want a later 3.11."""
    wants = {name: metadata.metadata(name).get("Requires-Python") for name in PINS if name not in FROM_CONDA}
    assert [f"{name} wants {python}" for name, python in wants.items() if python and "3.11.2" not in SpecifierSet(python)] == []


def test_the_sites_list_is_whole_over_the_courses_and_changes_nothing_of_it():
    """`make site` installs it without dependencies; it is there where `make test` has run."""
    pytest.importorskip("sphinx", reason="make site")
    assert not set(SITE) & set(PINS)
    assert {name: metadata.version(name) for name in SITE} == SITE
    for name in SITE:
        assert "3.11.2" in SpecifierSet(metadata.metadata(name).get("Requires-Python") or ""), name
        for needed in map(Requirement, metadata.requires(name) or []):
            if not needed.marker or needed.marker.evaluate({"extra": ""}):
                pin = {**PINS, **SITE}[canonicalize_name(needed.name)]
                assert pin in SpecifierSet(str(needed.specifier), prereleases=True), f"{name} needs {needed}"


def test_the_two_lists_for_cuda_and_for_all_do_not_overlap():
    assert CUDA and not set(CUDA) & set(PINS)


def test_the_full_tensorflow_is_not_pulled_over_tensorflow_cpu():
    assert "tensorflow-cpu" in PINS and "tensorflow" not in PINS


def test_no_package_builds_a_parser_in_every_process_that_reads_a_notebook():
    """rfc3987-syntax does, for 1.4 s: jsonschema asks for it from 4.25 on, and nbformat imports jsonschema."""
    assert "rfc3987-syntax" not in PINS


def test_conda_and_the_project_name_the_same_pythons():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert FROM_CONDA["python"] in PYTHONS
    supported = SpecifierSet(project["requires-python"])
    assert [version for version in range(8, 20) if f"3.{version}.0" in supported] == [10, 11, 12, 13, 14]
    assert {int(python[2:]) for python in PYTHONS} <= {10, 11, 12, 13, 14}


def test_conda_brings_the_compilers_cmake_and_mpi():
    assert {"python", "pip", "cxx-compiler", "cmake", "make", "mpich"} == set(FROM_CONDA)


def test_conda_and_pip_pin_the_same_versions_of_what_both_have():
    both = {name: version for name, version in FROM_CONDA.items() if name in PINS}
    assert set(both) == {"cmake", "mpich"}
    for name, version in both.items():
        assert version and (PINS[name] + ".").startswith(version + "."), f"{name}: conda {version}, pip {PINS[name]}"


def test_in_condas_environment_pip_installs_the_same_list_less_what_conda_brings(tmp_path):
    venv = setup_plan.Plan(ROOT, {})
    conda = setup_plan.Plan(ROOT, {"CONDA_PREFIX": str(tmp_path), "CONDA_DEFAULT_ENV": CONDA["name"]})
    assert conda.prefix == tmp_path and conda.conda and not venv.conda
    assert conda.pins() == {name: version for name, version in venv.pins().items() if name not in FROM_CONDA}
    assert setup_plan.conda_provides(ROOT / "environment.yml") == set(FROM_CONDA)


def test_another_active_conda_environment_is_left_alone():
    assert not setup_plan.Plan(ROOT, {"CONDA_PREFIX": "/opt/conda", "CONDA_DEFAULT_ENV": "base"}).conda

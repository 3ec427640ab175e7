"""One lock: all files that name packages agree with it, and so does what is installed.

They are pyproject.toml, constraints.txt, environment.yml and docker/hub.txt.
"""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from manyhands import own_environment
from manyhands.cli import setup_plan
from manyhands.cli.pythons import PYTHONS

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / setup_plan.LOCK
PINS, SITE, CUDA, IMAGE = (
    setup_plan.read_pins(LOCK, section) for section in ("course", "dev", "cuda", "hub-image")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
FROM_CONDA = dict(re.match(r"([a-z0-9-]+)=?(.*)", line).groups() for line in CONDA["dependencies"])


def asked(*extras):
    """{name: Requirement} of the core and these extras, on this machine."""
    requirements = {}
    for text in [*PROJECT["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]:
        needed = Requirement(text)
        if needed.name == "manyhands":
            requirements |= asked(*needed.extras)
        elif not needed.marker or needed.marker.evaluate({"extra": ""}):
            requirements[canonicalize_name(needed.name)] = needed
    return requirements


def brought(names, pins):
    """Return these packages and all that they bring along, as the lock has it.

    A package that the lock lacks fails the test with a sentence.
    """
    missing, seen, todo = set(), set(), [(name, "") for name in names]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for needed in map(Requirement, metadata.requires(name) or []):
            if needed.marker and not needed.marker.evaluate({"extra": extra}):
                continue
            child = canonicalize_name(needed.name)
            if child in CUDA:
                continue  # a CUDA build: step 3 installs these
            if (name, child) == ("tf-keras", "tensorflow"):
                child = "tensorflow-cpu"
            if child not in pins:
                missing.add(f"{name} needs {child}")
                continue
            assert pins[child] in SpecifierSet(str(needed.specifier), prereleases=True), (
                f"{name} needs {needed}"
            )
            todo += [(child, name) for name in ["", *needed.extras]]
    assert missing == set()
    return {name for name, _ in seen}


def test_every_line_of_the_lock_is_an_exact_pin_and_no_package_has_two():
    lines = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    assert [
        line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)
    ] == []
    names = [canonicalize_name(line.partition("==")[0]) for line in lines]
    assert sorted(names) == sorted(set(names)) and set(names) == {*PINS, *SITE, *CUDA, *IMAGE}
    assert CUDA and IMAGE and names[: len(PINS)] == sorted(PINS), (
        "make lab's packages come first, in the order of their names"
    )


def test_no_other_file_pins_a_package():
    """A version of a package is written down once.

    environment.yml has those that conda brings, see below.
    """
    pin = re.compile(r"^[A-Za-z0-9._-]+(\[[a-z,-]+\])?===?\d", re.MULTILINE)
    lists = [
        *ROOT.glob("*.txt"),
        *ROOT.glob("*.toml"),
        *(ROOT / "docker").glob("*.txt"),
        *(ROOT / "tests" / "gpu").glob("*.txt"),
    ]
    assert [path.name for path in lists if pin.search(path.read_text())] == [LOCK.name]
    assert [
        text
        for texts in [PROJECT["dependencies"], *EXTRAS.values()]
        for text in texts
        if "==" in text.partition(";")[0]
    ] == []


def test_the_lock_has_a_version_that_each_extra_accepts():
    assert set(EXTRAS) == {"clinic", "course", "hub", "site", "dev"}
    for name, needed in asked(*EXTRAS).items():
        assert {**PINS, **SITE}[name] in needed.specifier, needed


def test_what_make_lab_installs_is_the_core_with_course_and_hub_and_all_that_they_bring():
    """Step 4 installs without dependencies, so what the lock lacks would be missed at import."""
    whole = brought([name for name in asked(*EXTRAS) if name in PINS], PINS)
    assert set(PINS) - whole == set(), "nothing asks for these"
    assert set(asked("clinic", "course", "hub")) <= set(PINS)


def test_the_core_brings_no_framework_and_is_what_the_commands_for_ones_own_script_look_for():
    """PyTorch is the user's; pip must not replace it."""
    names = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert names == {*own_environment.PACKAGES, "tomli"}
    both = asked("clinic")
    assert not {"torch", "tensorflow", "tensorflow-cpu", "keras", "ipyparallel"} & brought(
        both, PINS
    )


def test_the_image_of_the_hub_has_the_extra_hub():
    listed = {
        line for line in (ROOT / "docker" / "hub.txt").read_text().splitlines() if line[0] != "#"
    }
    assert listed == set(asked("hub")) - {"batchspawner", "matplotlib", "numpy"} | set(IMAGE)


def test_what_is_installed_is_what_is_pinned():
    installed = {
        name: metadata.version(name).partition("+")[0] for name in PINS if name not in FROM_CONDA
    }
    assert installed == {name: version for name, version in PINS.items() if name in installed}


def test_every_pin_runs_on_debians_python():
    """Debian 12 has Python 3.11.2; some packages want a later 3.11."""
    wants = {
        name: metadata.metadata(name).get("Requires-Python")
        for name in PINS
        if name not in FROM_CONDA
    }
    assert [
        f"{name} wants {python}"
        for name, python in wants.items()
        if python and "3.11.2" not in SpecifierSet(python)
    ] == []


def test_what_make_test_adds_is_the_rest_of_dev_and_changes_nothing_of_the_course():
    """`make site` and `make test` install it without dependencies.

    It is installed where `make test` has run.
    """
    for package in ("sphinx", "pre_commit"):
        pytest.importorskip(package, reason="make site")
    assert {name: metadata.version(name) for name in SITE} == SITE
    assert [
        name
        for name in SITE
        if "3.11.2" not in SpecifierSet(metadata.metadata(name).get("Requires-Python") or "")
    ] == []
    whole = brought(asked("dev"), {**PINS, **SITE})
    assert set(SITE) - whole == set(), "nothing asks for these"


def test_the_full_tensorflow_is_not_pulled_over_tensorflow_cpu():
    assert "tensorflow-cpu" in PINS and "tensorflow" not in PINS


def test_no_package_builds_a_parser_in_every_process_that_reads_a_notebook():
    """rfc3987-syntax does, for 1.4 s.

    jsonschema asks for it from 4.25 on, and nbformat imports jsonschema.
    """
    assert "rfc3987-syntax" not in PINS


def test_conda_and_the_project_name_the_same_pythons():
    assert FROM_CONDA["python"] in PYTHONS
    supported = SpecifierSet(PROJECT["requires-python"])
    assert [version for version in range(8, 20) if f"3.{version}.0" in supported] == [
        10,
        11,
        12,
        13,
        14,
    ]
    assert {int(python[2:]) for python in PYTHONS} <= {10, 11, 12, 13, 14}


def test_conda_brings_the_compilers_cmake_and_mpi():
    assert {"python", "pip", "cxx-compiler", "cmake", "make", "mpich"} == set(FROM_CONDA)


def test_conda_and_pip_pin_the_same_versions_of_what_both_have():
    both = {name: version for name, version in FROM_CONDA.items() if name in PINS}
    assert set(both) == {"cmake", "mpich"}
    for name, version in both.items():
        assert version and (PINS[name] + ".").startswith(version + "."), (
            f"{name}: conda {version}, pip {PINS[name]}"
        )


def test_in_condas_environment_pip_installs_the_same_list_less_what_conda_brings(tmp_path):
    venv = setup_plan.Plan(ROOT, {})
    conda = setup_plan.Plan(
        ROOT, {"CONDA_PREFIX": str(tmp_path), "CONDA_DEFAULT_ENV": CONDA["name"]}
    )
    assert conda.prefix == tmp_path and conda.conda and not venv.conda
    assert conda.pins() == {
        name: version for name, version in venv.pins().items() if name not in FROM_CONDA
    }
    assert setup_plan.conda_provides(ROOT / "environment.yml") == set(FROM_CONDA)


def test_another_active_conda_environment_is_left_alone():
    assert not setup_plan.Plan(
        ROOT, {"CONDA_PREFIX": "/opt/conda", "CONDA_DEFAULT_ENV": "base"}
    ).conda

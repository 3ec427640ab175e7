"""Colab and Kaggle are prepared without changing what they have.

What a notebook lacks there is said.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from manyhands import units
from manyhands.learner import hosted

ROOT = Path(__file__).resolve().parents[3]
COLAB = {
    "torch": "2.11.0+cu128",
    "nvidia-nccl-cu12": "2.28.9",
    "tensorflow": "2.20.0",
    "tf-keras": "2.20.0",
    "numpy": "2.0.2",
    "ipython": "7.34.0",
    "ipykernel": "6.17.1",
    "ipyparallel": "8.8.0",
    "psutil": "5.9.5",
    "matplotlib": "3.10.0",
    "scikit-learn": "1.6.1",
    "tabulate": "0.9.0",
    "manyhands": "0.1.0",
}
UNIT = next(unit for unit in units.units(ROOT) if unit.number == "06")


@pytest.fixture
def place(monkeypatch):
    """A place with these packages, in which `refused` cannot be installed.

    `asked` are the calls of pip.
    """

    def make(there=COLAB, refused=()):
        asked = []

        def pip(*arguments):
            held = (
                [Path(arguments[1]).read_text().split()] if arguments[0] == "--constraint" else []
            )
            asked.append([list(map(str, arguments[2:] if held else arguments)), *held])
            return not any(name in str(word) for word in arguments for name in refused)

        monkeypatch.setattr(hosted, "installed", lambda: there)
        monkeypatch.setattr(hosted, "_pip", pip)
        monkeypatch.setattr(hosted, "says", lambda *_: None)
        return asked

    return make


def test_only_what_is_missing_is_installed_and_all_else_is_held(place):
    asked = place()
    assert hosted.install(ROOT) == []
    [[wanted, held]] = asked
    assert {word.partition("==")[0] for word in wanted} == {
        "ipyparallel",
        "mpich",
        "mpi4py",
        "lightning",
    }
    assert set(held) == {
        f"{name}=={version}" for name, version in COLAB.items() if name != "ipyparallel"
    }
    pins = (ROOT / "constraints.txt").read_text().split()
    assert set(wanted) <= set(pins), "the versions are those of the one list"


def test_a_version_that_pip_does_not_understand_is_not_held(place):
    """One such line would make pip refuse the whole file."""
    asked = place(
        COLAB | {"python-apt": "2.4.0+ubuntu4", "distro-info": "1.1build1", "odd": "unknown"}
    )
    hosted.install(ROOT)
    held = {line.partition("==")[0] for line in asked[0][1]}
    assert "python-apt" in held and not held & {"distro-info", "odd"} and "torch" in held


def test_a_place_that_has_all_is_left_as_it_is(place):
    asked = place(COLAB | {"ipyparallel": "9.2.0", "mpich": "1", "mpi4py": "1", "lightning": "1"})
    assert hosted.install(ROOT) == [] and asked == []


def test_a_framework_is_never_installed(place):
    asked = place({})
    hosted.install(ROOT)
    words = {word.partition("==")[0] for call in asked for word in call[0]}
    assert (
        not words & {"torch", "tensorflow", "tensorflow-cpu", "tf_keras", "keras"}
        and {"numpy", "psutil"} <= words
    )
    assert asked[-1][0] == ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]


def test_one_package_that_cannot_be_installed_does_not_cost_the_others(place):
    asked = place(refused=["mpich"])
    assert hosted.install(ROOT) == ["mpich"]
    assert [call[0][0].partition("==")[0] for call in asked[1:]] == [
        "ipyparallel",
        "mpich",
        "mpi4py",
        "lightning",
    ]


@pytest.mark.parametrize(
    "unit, there, failed, words",
    [
        (UNIT, {}, [], []),
        (UNIT, {"torch": None}, [], ["PyTorch is not installed here"]),
        (replace(UNIT, torch="2.13"), {}, [], ["PyTorch 2.11.0+cu128", "2.13 or later"]),
        (replace(UNIT, torch="2.13"), {"torch": "2.13.0"}, [], []),
        (replace(UNIT, torch="2.11"), {}, [], []),
        (UNIT, {}, ["mpich"], ["could not install mpich,", "needs it", "run this cell again"]),
        (UNIT, {}, ["mpich", "mpi4py"], ["could not install mpich, mpi4py,", "needs these"]),
        (
            replace(UNIT, framework="TensorFlow"),
            {"tensorflow": None, "tf-keras": None},
            [],
            ["TensorFlow is not", "tf_keras is not"],
        ),
        (
            replace(UNIT, framework="TensorFlow"),
            {"tensorflow": None, "tensorflow-cpu": "2.20"},
            [],
            [],
        ),
        (
            replace(UNIT, framework="PyTorch, TensorFlow, Keras"),
            {},
            [],
            ["Horovod is not installed here"],
        ),
        (replace(UNIT, framework="Keras"), {"horovod": "0.28.1"}, [], []),
        (replace(UNIT, memory_gib=7.5), {}, [], ["7.5 GiB", "8 GB in all"]),
    ],
)
def test_what_a_unit_lacks_is_said_in_sentences(place, monkeypatch, unit, there, failed, words):
    place({name: version for name, version in (COLAB | there).items() if version})
    monkeypatch.setattr(hosted, "memory_gb", lambda: 8)
    sentences = hosted.describe_lacks(unit, failed)
    assert bool(sentences) is bool(words) and all(word in " ".join(sentences) for word in words)
    assert all(sentence.endswith(".") for sentence in sentences)


@pytest.mark.parametrize(
    "lines, words",
    [
        (None, "no GPU, so ranks run on the CPU."),
        ("GPU 0: Tesla T4 (UUID: GPU-1)", "1 GPU (Tesla T4)."),
        (
            "GPU 0: Tesla T4 (UUID: GPU-1)\nGPU 1: Tesla T4 (UUID: GPU-2)",
            (
                "2 GPUs (Tesla T4). More ranks than GPUs share them over gloo. With "
                "Cluster(nodes=1, ranks_per_node=2), each rank has one to itself, over NCCL."
            ),
        ),
    ],
)
def test_the_place_is_described(place, monkeypatch, lines, words):
    place()
    monkeypatch.setattr(hosted, "says", lambda *_: lines)
    assert hosted.describe_place("/content/manyhands").startswith(
        "The course is ready in /content/manyhands, beside PyTorch 2.11.0+cu128 and"
    )
    assert hosted.describe_place().endswith(words)


def test_what_is_missing_is_named_before_a_minute_passes_and_no_course_is_ready_without_it(
    place, tmp_path, monkeypatch, capsys
):
    asked = place(refused=["mpich"])
    for name in ("notebooks/06_ddp.ipynb", "labs/06_ddp/06_ddp.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"cells": []}))
    (tmp_path / "constraints.txt").write_text((ROOT / "constraints.txt").read_text())
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.setenv(name, "")
    hosted.prepare("hosted/06_ddp_lab.ipynb", tmp_path)
    first, second, third = capsys.readouterr().out.splitlines()
    assert (
        first == "Installing ipyparallel, mpich, mpi4py, lightning. This takes about a minute."
        and asked
    )
    assert second.startswith(f"The course is in {tmp_path}, beside") and third.startswith(
        "* pip could not install mpich, so"
    )


@pytest.mark.parametrize("kind, folder", [("tutorial", "work"), ("lab", "work/06_ddp")])
def test_a_notebook_finds_itself_among_its_own_files(
    place, tmp_path, monkeypatch, capsys, kind, folder
):
    """So that its scripts are there, and predictions, hints and progress are kept."""
    place(COLAB | {"ipyparallel": "9.2.0", "mpich": "1", "mpi4py": "1", "lightning": "1"})
    for name in (
        "notebooks/06_ddp.ipynb",
        "notebooks/scripts/06_train.py",
        "labs/06_ddp/06_ddp.ipynb",
        "labs/06_ddp/06_train.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"cells": []}))
    (tmp_path / "constraints.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/opt/theirs")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")  # so that it is put back
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    for _ in range(2):  # a cell may be run twice
        hosted.prepare(f"hosted/06_ddp_{kind}.ipynb", tmp_path)
        assert os.environ["PYTHONPATH"] == f"{tmp_path / 'src'}:/opt/theirs", (
            "ranks import the same course as the kernel"
        )
        assert (
            os.getcwd() == str(tmp_path / folder)
            and Path("scripts/06_train.py" if kind == "tutorial" else "06_train.py").exists()
        )
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3", "there is no GPU, which is no error"
    assert capsys.readouterr().out.count("The course is ready") == 2

"""Prepare Colab or Kaggle for one notebook: `prepare("hosted/06_ddp_tutorial.ipynb")`.

The first cell of each notebook in `hosted/` calls it, in the clone that it has fetched. The
notebook's kernel is the place's own Python there, with a PyTorch that must stay as it is and with
packages that the kernel has loaded already. Therefore, only what is missing is installed, and every
other version is held where it is. What the unit needs and the place does not have is said in a
sentence, and all cells that do not need it run.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.learner.copies import copy_course, lab_copy, tutorial_copy
from manyhands.machine import memory_gb, processors, says
from manyhands.units import units

if TYPE_CHECKING:
    from manyhands.units import Unit

ROOT = Path(__file__).resolve().parents[3]
# What kernels and ranks use, of the lock. A framework is the place's own, or is lacking.
NEEDED = (
    "ipyparallel",
    "mpich",
    "mpi4py",
    "lightning",
    "psutil",
    "matplotlib",
    "numpy",
    "scikit-learn",
    "tabulate",
)
# the oldest major version that will do; no kernel of these places has loaded this package
NEWER = {"ipyparallel": 9}
VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z\d]+([._-][a-z\d]+)*)?",
    re.IGNORECASE,
)  # what pip takes for one
# any distribution will do
TENSORFLOW = {"TensorFlow": {"tensorflow", "tensorflow-cpu"}, "tf_keras": {"tf-keras"}}


def prepare(notebook: str | Path, root: Path = ROOT) -> None:
    """Install what is missing, make the learner's copies in `work/`, and enter their folder.

    Prints what the place has, and what this notebook lacks there.
    """
    name, _, kind = Path(notebook).stem.rpartition("_")
    unit = next(unit for unit in units(root) if unit.name == name)
    failed = install(root)
    source, given = str(root / "src"), os.environ.get("PYTHONPATH")
    # ranks import this course, and no other that is installed
    if source not in (given or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{given}" if given else source
    # TensorFlow's build for GPUs reports that there is none, as an error of each process
    if not gpus():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    copy_course(root)
    os.chdir((root / "work" / (lab_copy(name) if kind == "lab" else tutorial_copy(name))).parent)
    print(describe_place(root, failed))
    for sentence in describe_lacks(unit, failed):
        print(f"* {sentence}")


def install(root: Path = ROOT) -> list[str]:
    """Install the needed packages that are missing, and the course itself.

    Returns the names of those that could not be installed; pip says why.
    """
    pins = dict(
        re.findall(r"^([\w-]+)==(\S+)", (root / "constraints.txt").read_text(), re.MULTILINE)
    )
    there = installed()
    missing = [name for name in NEEDED if _numbers(there.get(name, "-1"))[0] < NEWER.get(name, 0)]
    failed = []
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as held:
        held.write(
            "".join(
                f"{name}=={version}\n"
                for name, version in there.items()
                if name not in missing and VERSION.fullmatch(version)
            )
        )
        held.flush()
        wanted = [f"{name}=={pins[name]}" for name in missing]
        if wanted:
            print(f"Installing {', '.join(missing)}. This takes about a minute.", flush=True)
        if wanted and not _pip("--constraint", held.name, *wanted):  # one of them, perhaps
            failed = [
                name
                for name in missing
                if not _pip("--constraint", held.name, f"{name}=={pins[name]}")
            ]
    if "manyhands" not in there and not _pip(
        "--no-deps", "--no-build-isolation", "--editable", root
    ):
        failed.append("manyhands")
    importlib.invalidate_caches()
    return failed


def _pip(*arguments: object) -> bool:
    """Whether pip could install this."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--root-user-action=ignore",
        *map(str, arguments),
    ]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        print(done.stdout.strip())
    return done.returncode == 0


def installed() -> dict[str, str]:
    """{name: version} of all packages that this Python has, with names in pip's form."""
    packages = (
        (distribution.metadata["Name"], distribution.version)
        for distribution in metadata.distributions()
    )
    return {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in packages
        if name and version
    }


def _numbers(version: str) -> tuple[int, ...]:
    """(2, 11) of 2.11.0+cu128; (-1,) of nothing."""
    return tuple(map(int, re.findall(r"-?\d+", version.partition("+")[0])[:2])) or (-1,)


def describe_place(root: Path = ROOT, failed: Sequence[str] = ()) -> str:
    """What the place has, in sentences.

    The course is not ready if packages could not be installed.
    """
    there = installed()
    frameworks = (("PyTorch", "torch"), ("TensorFlow", "tensorflow"))
    have = " and ".join(f"{title} {there[name]}" for title, name in frameworks if name in there)
    sentences = (
        f"The course is {'in' if failed else 'ready in'} {root}, beside {have or 'no framework'}. "
        f"This place has {processors()} cores, {memory_gb()} GB of memory and "
    )
    names = gpus()
    if not names:
        return sentences + "no GPU, so ranks run on the CPU."
    sentences += f"{len(names)} GPU{'s' if len(names) > 1 else ''} ({names[0]})."
    if len(names) > 1:
        sentences += (
            " More ranks than GPUs share them over gloo. With Cluster(nodes=1, "
            f"ranks_per_node={len(names)}), each rank has one to itself, over NCCL."
        )
    return sentences


def gpus() -> list[str]:
    """The names of this place's GPUs."""
    lines = (says("nvidia-smi", "-L") or "").splitlines()
    return [
        line.partition(": ")[2].partition(" (UUID")[0] for line in lines if line.startswith("GPU ")
    ]


def describe_lacks(unit: Unit, failed: Sequence[str] = ()) -> list[str]:
    """What this unit needs and the place does not have: a list of sentences."""
    there = installed()
    sentences: list[str] = []
    torch = there.get("torch")
    if torch is None:
        sentences.append("PyTorch is not installed here, so no cell that needs it can run.")
    elif unit.torch and _numbers(torch) < _numbers(unit.torch):
        sentences.append(
            f"This place has PyTorch {torch}, and this unit is written for {unit.torch} or later, "
            "so some cells of its tutorial or lab end with an error or print a different result."
        )
    if re.search("TensorFlow|Keras", unit.framework):
        sentences += [
            f"{title} is not installed here, so no cell that needs it can run."
            for title, names in TENSORFLOW.items()
            if not there.keys() & names
        ]
    if "Keras" in unit.framework and "horovod" not in there:
        sentences.append(
            "Horovod is not installed here, so no cell that needs it can run. `make lab` builds it,"
            " in a clone on your own machine."
        )
    if failed:
        sentences.append(
            f"pip could not install {', '.join(failed)}, so no cell that needs "
            f"{'these' if failed[1:] else 'it'} can run. The reason is above. If it was the "
            "network, run this cell again."
        )
    if unit.memory_gib and memory_gb() < unit.memory_gib + 1:
        sentences.append(
            f"The ranks of this unit hold {unit.memory_gib} GiB of memory, and this place has "
            f"{memory_gb()} GB in all."
        )
    return sentences

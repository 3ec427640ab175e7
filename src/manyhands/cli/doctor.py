"""`manyhands doctor`: what this machine can do for the course, and which units lack something.

Packages are looked up, not imported, so that the answer comes in a second and comes even where an
import would fail.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.cli.pythons import PYTHONS, TESTED, any_of
from manyhands.cli.setup_plan import read_pins
from manyhands.command_line import completed, parser, working
from manyhands.machine import horovod_build, memory_gb, processors, program, says
from manyhands.units import NotACloneError, find_root, units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


REPAIR = "make setup"
MISSING = "Missing:"
MISSING_OUTSIDE = (
    "Missing for the course, which `make setup` in a clone of it sets up (clinic, rehearse and predict "
    "need only PyTorch here):"
)


@dataclass
class Finding:
    """One thing that was looked for: what was found (None if it is missing), and what mends it.

    `affects` says which units miss it.
    """

    name: str
    found: str | None
    affects: str = ""
    remedy: str = ""


def package(name: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def first_line(text: str | None) -> str | None:
    """Return the first line of a text; an empty text and None stay as they are."""
    return text.splitlines()[0] if text else text


def numbers(*frameworks: str) -> str:
    """`units 02, 07`: those whose framework is one of these."""
    chosen = [
        unit.number for unit in units(Path()) if any(name in unit.framework for name in frameworks)
    ]
    return f"units {', '.join(chosen)}" if len(chosen) > 1 else f"unit {''.join(chosen)}"


def survey_languages() -> list[Finding]:
    """Look for Python, the compilers and what builds Horovod."""
    compiler = next(
        filter(None, (says(name, "--version") for name in ("c++", "g++", "clang++"))), None
    )
    only_horovod = "building Horovod (not needed once its wheel is in the cache)"
    python = platform.python_version()
    return [
        Finding(
            "Python",
            f"{python} ({sys.executable})" if python.rpartition(".")[0] in PYTHONS else None,
            f"everything, because the course needs {any_of(PYTHONS)}",
            REPAIR,
        ),
        Finding("C++ compiler", first_line(compiler), only_horovod, "apt-get install g++"),
        Finding("CMake", first_line(says("cmake", "--version")), only_horovod, REPAIR),
        Finding(
            "make", first_line(says("make", "--version")), only_horovod, "apt-get install make"
        ),
    ]


def compare_with_lock() -> Finding:
    """What the stored outputs depend on, and what of it is not what was pinned."""
    try:
        pins = read_pins(find_root() / "constraints.txt")
    except (NotACloneError, OSError):
        return Finding("combination", "not known, because the pins are in a clone of the course")
    installed = {
        name: (package(name) or "").partition("+")[0]
        for name in ("torch", "tensorflow-cpu", "tf-keras", "keras", "numpy", "matplotlib")
    }
    other = [
        f"{name} {version} (pinned: {pins[name]})"
        for name, version in installed.items()
        if version and version != pins[name]
    ]
    if other:
        return Finding(
            "combination",
            None,
            "stored outputs may differ in their last digits, but checks do not: "
            f"{', '.join(other)}",
            REPAIR,
        )
    python = platform.python_version()
    outputs = (
        "outputs are as stored"
        if python.startswith(f"{TESTED}.")
        else (
            f"the stored outputs were made with Python {TESTED}, and have not been compared on this"
            " version"
        )
    )
    return Finding("combination", f"Python {python} with the pinned packages: {outputs}")


def survey_frameworks() -> list[Finding]:
    """Look for PyTorch, TensorFlow, Horovod and the packages of the notebooks."""
    tensorflow = package("tensorflow-cpu") or package("tensorflow")
    return [
        Finding("PyTorch", package("torch"), numbers("PyTorch", "all"), REPAIR),
        Finding("TensorFlow", tensorflow, numbers("TensorFlow", "all"), REPAIR),
        Finding(
            "tf_keras (Keras 2)", package("tf_keras"), numbers("TensorFlow", "Keras", "all"), REPAIR
        ),
        Finding("Keras", package("keras"), numbers("TensorFlow", "Keras", "all"), REPAIR),
        Finding("ipyparallel", package("ipyparallel"), "all units", REPAIR),
        Finding("JupyterLab", package("jupyterlab"), "`make lab`", REPAIR),
        Finding(
            "Horovod",
            horovod_version(),
            numbers("Horovod", "Keras", "all") + ", cluster.launch with horovodrun",
            REPAIR + " (it builds Horovod again)",
        ),
        compare_with_lock(),
    ]


def horovod_version() -> str | None:
    """Horovod's version with the controllers that it was built with, read from its libraries."""
    version = package("horovod")
    if version is None:
        with suppress(NotACloneError):
            if how_far := horovod_build(find_root()):
                return f"not yet: {how_far}"
        return None
    built = []
    for library in Path(str(metadata.distribution("horovod").locate_file("horovod"))).glob(
        "*/mpi_lib*.so"
    ):
        content = library.read_bytes()
        controllers = [
            name
            for name, mark in (("Gloo", b"HOROVOD_GLOO_RENDEZVOUS_ADDR"), ("MPI", b"libmpi.so"))
            if mark in content
        ]
        built.append(f"{library.parent.name}: {' and '.join(controllers) or 'no controller'}")
    return f"{version} ({'; '.join(sorted(built)) or 'no library was built'})"


def survey_devices() -> list[Finding]:
    """Look for GPUs, cores, memory and disk space."""
    gpus = [
        line for line in (says("nvidia-smi", "-L") or "").splitlines() if line.startswith("GPU ")
    ]
    return [
        Finding(
            "GPUs",
            "; ".join(line.split(" (UUID")[0] for line in gpus) or None,
            "unit 03 (it shows DataParallel on the CPU only) and NCCL everywhere (its criteria are "
            "BLOCKED and not failed); everything else runs on the CPU",
            "none needed",
        ),
        amount(
            "cores",
            processors(),
            2,
            "",
            "speed, because ranks take turns",
            "a machine with 2 cores or more",
        ),
        amount("memory", memory_gb(), 4, " GB", "clusters of 4 ranks", "4 GB of memory or more"),
        amount(
            "disk",
            int(shutil.disk_usage(Path.cwd()).free / 1e9),
            2,
            " GB free",
            "notebooks and saved work",
            "make room",
        ),
    ]


def amount(name: str, there: float, needed: float, unit: str, affects: str, remedy: str) -> Finding:
    """A finding about a quantity: too little counts as missing, and is told."""
    if there >= needed:
        return Finding(name, f"{there}{unit}", affects, remedy)
    return Finding(name, None, f"{affects} ({there}{unit} is not much)", remedy)


def survey_clusters() -> list[Finding]:
    """Look for MPI and Slurm."""
    mpi = next(
        (
            line.split(":", 1)[1].strip()
            for line in (says("mpirun", "--version") or "").splitlines()
            if "Version:" in line
        ),
        None,
    )
    nodes = says("sinfo", "--noheader", "--format=%D nodes %T", timeout_s=5)
    daemons = [name for name in ("slurmctld", "slurmd", "munged") if not program(name)]
    return [
        Finding(
            "MPI",
            (f"MPICH {mpi}" if mpi else first_line(says("mpirun", "--version"))),
            "MANYHANDS_PROFILE=mpi, cluster.launch with mpirun",
            REPAIR,
        ),
        Finding(
            "Slurm cluster",
            ", ".join(nodes.splitlines()) if nodes else None,
            "MANYHANDS_PROFILE=slurm; no unit needs it",
            (
                "work on a node of a Slurm cluster"
                if program("sbatch")
                else "apt-get install slurm-client, on a node of a Slurm cluster"
            ),
        ),
        Finding(
            "Slurm's daemons",
            None if daemons else "slurmctld, slurmd, munged",
            "only the tests of the slurm profile",
            "apt-get install slurmctld slurmd munge",
        ),
    ]


def survey_isolation() -> list[Finding]:
    """Look for what isolates a graded submission, and for a browser."""
    spaces = (
        "yes"
        if says("unshare", "--user", "--map-root-user", "--mount", "--net", "true") is not None
        else None
    )
    sandbox = says("bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "true")
    # docker's client alone can do nothing
    engines = {"podman": ("--version",), "docker": ("version", "--format={{.Server.Version}}")}
    container = next(
        (
            f"{name}: {first_line(text)}"
            for name, arguments in engines.items()
            if (text := says(name, *arguments))
        ),
        None,
    )
    browser = next(
        filter(
            None,
            (says(name, "--version") for name in ("chromium", "chromium-browser", "google-chrome")),
        ),
        None,
    )
    return [
        Finding(
            "user namespaces",
            spaces,
            "grading in a sandbox and emulated networks, but no unit needs them",
            "allow them (sysctl kernel.unprivileged_userns_clone=1, or "
            "kernel.apparmor_restrict_unprivileged_userns=0)",
        ),
        Finding(
            "bubblewrap",
            says("bwrap", "--version") if sandbox is not None else None,
            "grading uses containers if they are available (docs/GRADING.md); otherwise `manyhands "
            "check` runs without a sandbox",
            (
                "apt-get install bubblewrap"
                if not program("bwrap")
                else "it is installed, but user namespaces are not allowed here"
            ),
        ),
        Finding(
            "containers",
            container,
            "container images for instructors; no unit",
            "apt-get install podman",
        ),
        Finding(
            "Chromium",
            browser,
            "the browser tests, slides as PDF; no unit",
            "apt-get install chromium",
        ),
    ]


def survey() -> dict[str, list[Finding]]:
    """{group: [Finding]} of this machine."""
    return {
        "languages": survey_languages(),
        "frameworks": survey_frameworks(),
        "devices": survey_devices(),
        "clusters": survey_clusters(),
        "isolation": survey_isolation(),
    }


def _in_a_clone() -> bool:
    with suppress(NotACloneError):
        return bool(find_root())
    return False


def report(groups: Mapping[str, Sequence[Finding]]) -> str:
    """Write the survey as text: all that was found, then what is missing.

    For what is missing, it says whom that affects and what mends it.
    """
    findings = [finding for group in groups.values() for finding in group]
    width = max(len(finding.name) for finding in findings)
    lines = [
        (
            f"manyhands {package('manyhands') or '(not installed)'} on {platform.system()} "
            f"{platform.machine()}"
        ),
        "",
    ]
    lines += [
        f"  {finding.name:<{width}}  {finding.found}" for finding in findings if finding.found
    ]
    missing = [finding for finding in findings if not finding.found]
    lines += [
        "",
        (MISSING if _in_a_clone() else MISSING_OUTSIDE) if missing else "Nothing is missing.",
    ]
    for finding in missing:
        lines += [
            f"  {finding.name:<{width}}  affects: {finding.affects}",
            f"  {'':<{width}}  remedy:  {finding.remedy}",
        ]
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Run `manyhands doctor`: print the survey of this machine; returns the exit status."""
    made = parser("doctor", "Report what this machine can do for the course.", ["", "--json"])
    made.add_argument(
        "--json",
        action="store_true",
        help="print all findings for programs, with found = null for what is missing",
    )
    options = completed(made).parse_args(argv)
    with working("looking at this machine"):
        groups = survey()
    if options.json:
        print(
            json.dumps(
                {name: [asdict(finding) for finding in group] for name, group in groups.items()},
                indent=1,
            )
        )
    else:
        print(report(groups))
    return 0

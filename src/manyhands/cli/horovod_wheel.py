"""Horovod 0.28.1, built once from its source archive and kept outside the clone.

Edits make it fit today's frameworks.

Standard library only: the set-up runs this with the system's Python, before anything is installed.
The wheel has both controllers, Gloo and MPI; MPI comes from the environment's own mpicxx (the mpich
wheel, or conda's mpich). With MANYHANDS_HOROVOD_GPU=1 it is built for CUDA tensors over NCCL, where
CUDA's tools are. That way is read from Horovod's sources, and has not been run yet.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.machine import read_progress, write_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from manyhands.cli.setup_steps import Watch

    Edit = tuple[str, str, str]  # file, text, replacement
    Run = Callable[[list[str], dict[str, str], str], object]  # a command, its environment, where
    # and what of its lines to show
    RunShown = Callable[[list[str], dict[str, str], str, Watch], object]


VERSION = "0.28.1"
AFFECTED = "unit 10 (Horovod) and the tests of horovodrun"

# Libraries are found relative to the installed module, so that a cached wheel serves any other
# environment too. From lib/python3.11/site-packages/horovod/<framework>/ these are the
# environment's lib/ (MPI) and the frameworks' own folders.
RUN_PATH = "$ORIGIN/../../../..;$ORIGIN/../../torch/lib;$ORIGIN/../../tensorflow"

# On the loopback each process listens on an address of its own, not on 127.0.0.1. Its Gloo takes
# whoever connects to a port for the rank that it waits for, and 127.0.0.1 is full of strangers:
# whatever waits for a Jupyter kernel to come up tries its ports, free until then, ten times a
# second. A rank that met one waited for 30 s, and all were aborted.
OWN_LOOPBACK_ADDRESS = """lookupAddrForHostname(attr);
  }
#ifdef __linux__
  auto own = (struct sockaddr_in*)&attr.ai_addr;
  if (attr.ai_family == AF_INET && ntohl(own->sin_addr.s_addr) >> 24 == 127) {
    own->sin_addr.s_addr = htonl(0x7f400000u | (getpid() & 0x3fffffu));  // 127.64.0.0/10
  }
#endif
  return attr;"""

# (file, text, replacement): the frameworks of 2026 need C++17 (PyTorch from 2.14 on C++20:
# `edits`), and TensorFlow's wheel lacks headers that xla_mpi_ops.cc includes (only Horovod inside
# XLA-compiled functions is lost). Beside PyTorch's CUDA build it would ask for CUDA's tools; ours
# is for CPU tensors, unless it is asked for otherwise.
EDITS = [
    (
        "CMakeLists.txt",
        "set(CMAKE_CXX_STANDARD 14)",
        (
            "set(CMAKE_CXX_STANDARD 17)\nset(CMAKE_BUILD_WITH_INSTALL_RPATH "
            f'ON)\nset(CMAKE_INSTALL_RPATH "{RUN_PATH}")'
        ),
    ),
    ("horovod/torch/CMakeLists.txt", "set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 17)"),
    (
        "horovod/tensorflow/CMakeLists.txt",
        'list(APPEND TF_SOURCES "${PROJECT_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc")',
        "",
    ),
    (
        "cmake/Modules/FindPytorch.cmake",
        'string(TOUPPER "${Pytorch_CUDA}" Pytorch_CUDA)',
        'set(Pytorch_CUDA "FALSE")',
    ),
    (
        "third_party/gloo/gloo/transport/tcp/device.cc",
        "lookupAddrForHostname(attr);\n  }\n  return attr;",
        OWN_LOOPBACK_ADDRESS,
    ),
]
SETTINGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITH_MPI": "1",
    "LDFLAGS": "-Wl,-s",
}
GPU_SETTINGS = {"HOROVOD_GPU": "CUDA", "HOROVOD_GPU_OPERATIONS": "NCCL"}
# Where CUDA and NCCL lie, if Horovod's build does not find them; taken from the caller only for a
# GPU build.
GPU_PLACES = (
    "HOROVOD_CUDA_HOME",
    "HOROVOD_NCCL_HOME",
    "HOROVOD_NCCL_INCLUDE",
    "HOROVOD_NCCL_LIB",
    "HOROVOD_NCCL_LINK",
    "HOROVOD_BUILD_CUDA_CC_LIST",
)

# Run by the environment's Python: what a built wheel depends on.
ASK_VERSIONS = """
import json, platform, sysconfig
from importlib.metadata import version, PackageNotFoundError
found = {"python": platform.python_version()[:4], "platform": sysconfig.get_platform(), "libc": platform.libc_ver()}
for name in ("torch", "tensorflow", "tensorflow-cpu", "mpich"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        found[name] = None
print(json.dumps(found, sort_keys=True))
"""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built wheels are kept: ${XDG_CACHE_HOME:-~/.cache}/manyhands/wheels."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "manyhands" / "wheels"


def for_gpus(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the wheel is to take CUDA tensors over NCCL."""
    return environ.get("MANYHANDS_HOROVOD_GPU") == "1"


def edits(environ: Mapping[str, str] = os.environ, torch: str | None = None) -> list[Edit]:
    """What is changed in the sources, for this version of PyTorch (None: the pinned one)."""
    asked = [edit for edit in EDITS if not (for_gpus(environ) and "Pytorch_CUDA" in edit[1])]
    if [int(number) for number in re.findall(r"\d+", torch or "")[:2]] < [2, 14]:
        return asked
    return [
        (name, old, new.replace("STANDARD 17", "STANDARD 20") if "/torch/" in name else new)
        for name, old, new in asked
    ]


def settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of the build: ours, and with GPUs those that say where CUDA and NCCL lie."""
    if not for_gpus(environ):
        return SETTINGS
    return {
        **SETTINGS,
        **GPU_SETTINGS,
        **{name: environ[name] for name in GPU_PLACES if name in environ},
    }


def wheel_key(versions: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> str:
    """Return a short name for one build, which changes with whatever goes into the wheel.

    That is any version, edit or setting.
    """
    recipe = json.dumps(
        [VERSION, edits(environ, versions.get("torch")), settings(environ), versions],
        sort_keys=True,
    )
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def installed_versions(python: str | Path) -> dict[str, Any]:
    """The versions that the environment of this Python would build against."""
    return json.loads(subprocess.check_output([str(python), "-c", ASK_VERSIONS], text=True))


def missing_tools(
    python: str | Path, search_path: str | None = None, environ: Mapping[str, str] = os.environ
) -> list[tuple[str, str]]:
    """Return [(what is missing, what to do)] before a build.

    It answers in a moment, so that nobody waits for a build that must fail.
    """
    missing: list[tuple[str, str]] = []
    if not any(
        shutil.which(name, path=search_path)
        for name in (os.environ.get("CXX") or "c++", "c++", "g++")
    ):
        missing.append(("a C++ compiler", "apt-get install g++"))
    if not shutil.which("make", path=search_path):
        missing.append(("make", "apt-get install make"))
    ask = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.check_output([str(python), "-c", ask], text=True).strip()
    if not os.path.exists(os.path.join(include, "Python.h")):
        missing.append(("Python's header files", "apt-get install python3-dev"))
    if for_gpus(environ) and not (
        environ.get("HOROVOD_CUDA_HOME")
        or environ.get("CUDA_HOME")
        or shutil.which("nvcc", path=search_path)
    ):
        missing.append(
            ("nvcc, CUDA's compiler", "install the CUDA toolkit, or name it by HOROVOD_CUDA_HOME")
        )
    return missing


def edit_sources(folder: str | Path, torch: str | None = None) -> None:
    """Apply the edits; an edit that no longer fits is an error, never a silent no-op."""
    for name, old, new in edits(torch=torch):
        path = Path(folder) / name
        text = path.read_text()
        if text.count(old) != 1:
            raise RuntimeError(f"Horovod {VERSION}: {name} does not contain exactly once: {old}")
        path.write_text(text.replace(old, new))


def build_environment(
    bin_folder: str | Path, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of the build, with one compiler per core.

    It has our settings instead of anybody's HOROVOD_ variables.
    """
    env = {name: value for name, value in environ.items() if not name.startswith("HOROVOD_")}
    env.update(settings(environ))
    env["PATH"] = f"{bin_folder}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["MAKEFLAGS"] = f"-j{environ.get('MANYHANDS_BUILD_JOBS') or os.cpu_count() or 2}"
    return env


@contextmanager
def hold_build_lock(path: Path, waiting: Callable[[], object]) -> Iterator[bool]:
    """Allow one build at a time on this machine; yields whether the lock is held.

    A second set-up calls `waiting()` each second, and then finds the wheel in the cache. False on a
    file system without locks, where two builds may run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        alone = None
        while alone is None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
            except BlockingIOError:
                waiting()
                time.sleep(1)
            except OSError:
                alone = False
        yield alone


def build_detail(line: str) -> str | None:
    """Return the per cent that CMake's build prints, as a text, or None.

    The last four are the linking, which prints nothing for a long time.
    """
    percent = re.search(r"\[ *(\d+)%\]", line)
    if not percent:
        return None
    return f"building, {percent[1]} %: " + (
        "last step, about a minute" if int(percent[1]) > 95 else "about 4 minutes on 2 cores, once"
    )


def cached_wheel(folder: Path) -> Path | None:
    """The finished wheel in this folder of the cache, or None."""
    return next(iter(sorted(folder.glob("horovod-*.whl"))), None)


def get_wheel(
    python: str | Path,
    call: RunShown,
    cache: Path | None = None,
    waiting: Callable[[str], object] = lambda detail: None,
) -> Path:
    """The wheel for this Python's environment: from the cache, else built there.

    `call(command, env, cwd, watch)` runs one command, shows what `watch(line)` makes of its lines,
    keeps its log, and raises when it fails. `waiting(detail)`: another process is building it, and
    this far.
    """
    folder = (cache or cache_folder()) / wheel_key(installed_versions(python))
    if wheel := cached_wheel(folder):
        return wheel
    progress = folder.with_suffix(".progress")
    with hold_build_lock(
        folder.with_suffix(".lock"), lambda: waiting(read_progress(progress))
    ) as alone:
        if not cached_wheel(folder):
            progress.unlink(missing_ok=True)
            build(python, folder, partial(_call, call, progress), alone)
            progress.unlink(missing_ok=True)
    wheel = cached_wheel(folder)
    assert wheel is not None  # else the build has raised
    return wheel


def _call(
    call: RunShown, progress: Path, command: list[str], env: dict[str, str], cwd: str
) -> None:
    def watch(line: str) -> str | None:
        detail = build_detail(line)
        if detail:
            write_progress(progress, detail)
        return detail

    call(command, env, cwd, watch)


def build(python: str | Path, folder: Path, call: Run, alone: bool = True) -> None:
    """Build in a folder of the cache; the finished wheel enters the cache in one rename.

    A build that was killed goes on with what is compiled already. If that fails, all is built
    again. If another build may run (not `alone`), the folder is this process's own.
    """
    # compiled files know the environment by its path
    ours = (
        hashlib.sha256(str(python).encode()).hexdigest()[:8]
        if alone
        else f"{os.uname().nodename}-{os.getpid()}"
    )
    work = folder.with_name(f"{folder.name}-{ours}.build")
    goes_on = work.is_dir()
    for linked in work.glob("build/**/*.so"):
        linked.unlink()  # it may be half written, and make would take it for finished
    try:
        _build(python, folder, call, work)
    except Exception:
        if not goes_on:
            raise
        shutil.rmtree(work)
        _build(python, folder, call, work)
    for unfinished in folder.parent.glob(f"{folder.name}-*.build") if alone else [work]:
        shutil.rmtree(unfinished, ignore_errors=True)


def _build(python: str | Path, folder: Path, call: Run, work: Path) -> None:
    env, pip = build_environment(Path(python).parent), [str(python), "-m", "pip"]
    aside = f".unfinished-{work.name}-"
    for killed in folder.parent.glob(f"{aside}*"):
        shutil.rmtree(killed, ignore_errors=True)
    if not work.is_dir():
        with tempfile.TemporaryDirectory(prefix=aside, dir=folder.parent) as fetched:
            call(
                [
                    *pip,
                    "download",
                    "--no-deps",
                    "--no-build-isolation",
                    "--no-binary",
                    "horovod",
                    "--dest",
                    fetched,
                    f"horovod=={VERSION}",
                ],
                env,
                fetched,
            )
            with tarfile.open(next(Path(fetched).glob("horovod-*.tar.gz"))) as archive:
                archive.extractall(fetched)
            source = Path(fetched) / f"horovod-{VERSION}"
            edit_sources(source, installed_versions(python)["torch"])
            os.replace(source, work)
    with tempfile.TemporaryDirectory(prefix=aside, dir=folder.parent) as unfinished:
        call(
            [
                *pip,
                "wheel",
                "--verbose",
                "--no-deps",
                "--no-build-isolation",
                "--wheel-dir",
                unfinished,
                str(work),
            ],
            env,
            unfinished,
        )
        wheel = next(Path(unfinished).glob("horovod-*.whl"))
        folder.mkdir(exist_ok=True)
        os.replace(wheel, folder / wheel.name)

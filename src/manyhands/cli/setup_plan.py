"""What the set-up has to do, and what a stamp says is done already.

It decides which Python to use and which packages to install.

Standard library only, and readable by Python 3.9.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.cli import horovod_wheel, offline
from manyhands.cli.installers import Installer
from manyhands.cli.pythons import PYTHONS, any_of, ask_python, series, version_of
from manyhands.cli.setup_steps import REASONS, StepFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from manyhands.cli.setup_steps import Steps


LOCK = "constraints.txt"
NEEDED_GB, NEEDED_GB_GPU = 5, 12
CUDA_NOT_WANTED = (
    "This machine shows no GPU, but the package index offers PyTorch's CUDA build: several GB.\n   "
    "   For the small CPU build stop here and type: make lab TORCH_INDEX=<the CPU index named on "
    "pytorch.org, page Get Started>"
)
GPU_NOT_USED = (
    "This machine has a GPU, but this is PyTorch's CPU build. For the CUDA build, type: make setup "
    "TORCH_INDEX=<the CUDA index named on pytorch.org>"
)
NOT_FOR_PROGRAMS = {
    "PYTHONHOME",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKEOVERRIDES",
    "MAKELEVEL",
    "ARGS",
    "NB",
    "TORCH_INDEX",
    "TORCH_FIND_LINKS",
}
HOROVOD_AGAIN = f"affected: {horovod_wheel.AFFECTED}; `make setup` tries again"
TRY_HOROVOD = (
    "import horovod.torch as hvd, horovod.tensorflow; "
    "assert hvd.gloo_built() and hvd.mpi_built(), 'a controller is missing'"
)


def gpu_here() -> bool:
    """Whether this machine shows an NVIDIA GPU."""
    if os.path.exists("/dev/nvidia0"):
        return True
    try:
        answer = subprocess.run(
            ["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20
        )
        return b"GPU 0" in answer.stdout
    except (OSError, subprocess.SubprocessError):
        return False


def read_pins(path: str | Path, section: str | None = None) -> dict[str, str]:
    """Return {name: version} of the lock's `name==version` lines, with names in pip's form.

    With a `section`, only the lines below `# [section]` count.
    """
    pins: dict[str, str] = {}
    at: str | None = None
    for line in Path(path).read_text().splitlines():
        if header := re.match(r"# \[([a-z-]+)\]", line):
            at = header.group(1)
        pin = re.match(r"([A-Za-z0-9._-]+)==(\S+)", line)
        if pin and section in (None, at):
            pins[re.sub(r"[-_.]+", "-", pin.group(1)).lower()] = pin.group(2)
    return pins


def conda_provides(path: str | Path) -> set[str]:
    """The names that environment.yml takes from conda."""
    return set(
        re.findall(
            r"^ +- ([a-z0-9_.-]+)",
            Path(path).read_text().partition("dependencies:")[2],
            re.MULTILINE,
        )
    )


def detail(line: str) -> str | None:
    """A short word on what uv is doing, or None."""
    words = line.split()
    if words[:1] in (["Resolved"], ["Prepared"], ["Installed"], ["Bytecode"]):
        return " ".join(words[:3]).lower()
    if len(words) > 1 and words[0] in ("Downloading", "Building"):
        return f"{words[0].lower()} {os.path.basename(words[1])}"
    return None


def explain_os_error(error: OSError) -> tuple[str, str]:
    """(why, what to do) of an OSError in the set-up itself."""
    if error.errno == errno.ENOSPC:
        return next((why, remedy) for pattern, why, remedy in REASONS if "No space" in pattern)
    return str(error), "repair that, then type the same command again"


def digest(*parts: object) -> str:
    """A short name for a state."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


class Plan:
    """The environment of one clone: where it is, what it should hold, and what its stamp says."""

    def __init__(self, root: str | Path, environ: Mapping[str, str]) -> None:
        self.root, self.environ = Path(root), environ
        self.conda = environ.get("CONDA_DEFAULT_ENV") == "manyhands" and bool(
            environ.get("CONDA_PREFIX")
        )
        self.prefix = Path(environ["CONDA_PREFIX"]) if self.conda else self.root / ".venv"
        self.python = self.prefix / "bin" / "python"
        self.stamp_path = self.prefix / "manyhands-setup.json"
        self.package_list = self.prefix / "manyhands-packages.txt"
        self.offline = offline.folder_of(self.root)
        self.index = environ.get("MANYHANDS_TORCH_INDEX") or ""
        self.find_links = environ.get("MANYHANDS_TORCH_FIND_LINKS") or ""
        try:
            self.stamp: dict[str, Any] = json.loads(self.stamp_path.read_text())
        except (OSError, ValueError):
            self.stamp = {}
        self.site = environ.get("MANYHANDS_SITE") == "1" or (
            "MANYHANDS_SITE" not in environ and self.stamp.get("site", False)
        )

    # -- what the stamp says

    def environment_ready(self) -> bool:
        """Whether the virtual environment is ours, for this clone, and its Python still runs."""
        made_for_this = (
            self.stamp.get("root") == str(self.root) and self.stamp.get("site", False) == self.site
        )
        return made_for_this and self.stamp.get("python") in PYTHONS and os.path.exists(self.python)

    def finished(self, but_bytecode: bool = False) -> bool:
        """Whether everything wanted is installed (or Horovod has failed before), and compiled."""
        return (
            self.finished_but_horovod()
            and self.horovod_tried()
            and (but_bytecode or self.compiled())
        )

    def compiled(self) -> bool:
        """Whether the bytecode of what is wanted was written."""
        return self.stamp.get("compiled") == self.bytecode_wanted()

    def finished_but_horovod(self) -> bool:
        """Whether everything wanted but Horovod and the bytecode is installed."""
        if not (os.path.exists(self.python) and (self.conda or self.environment_ready())):
            return False
        done = {name: self.stamp.get(name) for name in ("torch", "packages", "course")}
        wanted = {
            "torch": self.torch_wanted(),
            "packages": self.packages_wanted(),
            "course": self.course_wanted(),
        }
        return done == wanted

    def horovod_tried(self) -> bool:
        """Whether the Horovod that is wanted is installed, or its build has failed."""
        return self.horovod_wanted() in (
            self.stamp.get("horovod"),
            self.stamp.get("horovod_failed"),
        )

    def horovod_done(self) -> bool:
        """Whether the Horovod that is wanted is installed."""
        return self.stamp.get("horovod") == self.horovod_wanted()

    def horovod_may_work_now(self) -> bool:
        """It failed for want of a tool, and the tool is there now."""
        return bool(self.stamp.get("horovod_lacks")) and not horovod_wheel.missing_tools(
            self.python
        )

    def begin_part(self, name: str) -> list[str]:
        """Remember that a part was begun.

        Returns the option that writes every file again, where the part was interrupted before.
        """
        interrupted = self.stamp.get("unfinished") == name
        self.stamp["unfinished"] = name
        self.stamp.pop(name, None)
        self.stamp.pop("compiled", None)
        self.save()
        return ["--force-reinstall"] if interrupted else []

    def finish_part(self, name: str, value: object) -> None:
        """Remember in the stamp that a part is installed, in the state `value`."""
        self.stamp.pop("unfinished", None)
        self.stamp[name] = value
        self.save()

    def save(self) -> None:
        """Write the stamp in one rename, so that it is never half written."""
        unfinished = self.stamp_path.with_suffix(".new")
        unfinished.write_text(json.dumps(self.stamp, indent=1, sort_keys=True) + "\n")
        os.replace(unfinished, self.stamp_path)

    # -- what is wanted

    def pythons(self) -> Sequence[str]:
        """The versions that will do: wheels that were carried here are for one."""
        return (offline.made_for(self.offline)["python"],) if self.offline else PYTHONS

    def torch_source(self) -> list[str]:
        """Return the options for where PyTorch comes from.

        It comes from where it is asked for now, else from where it was asked for before.
        """
        asked = ["--extra-index-url", self.index] if self.index else []
        asked += ["--find-links", self.find_links] if self.find_links else []
        return asked or self.stamp.get("torch_source", [])

    def torch_wanted(self) -> str:
        """Return the state of PyTorch that is wanted: its version, and where it comes from."""
        if self.site:
            return "the site's"
        return digest(self.pins()["torch"], *self.torch_source())

    def torch_arguments(self) -> list[str | Path]:
        """Return the options and the requirement for PyTorch.

        Another build of the same version counts as installed: when the source changes, force it.
        """
        force = (
            ["--force-reinstall"]
            if self.version("torch") and self.torch_source() != self.stamp.get("torch_source", [])
            else []
        )
        return [
            "--constraint",
            self.section_list("course"),
            f"torch=={self.pins()['torch']}",
            *self.torch_source(),
            *force,
        ]

    def torch_build(self) -> dict[str, list[str | Path]]:
        """Return the options for PyTorch's build, where the user has not said which.

        uv looks for a GPU and asks PyTorch's own index; the ordinary index has the build for CUDA.

        UV_TORCH_BACKEND names a build; where it is set and empty, only the ordinary index is asked.
        """
        if self.torch_source() or self.offline:
            return {}
        backend = self.environ.get("UV_TORCH_BACKEND", "auto")
        return {
            "first": ["--torch-backend", backend] if backend else [],
            "otherwise": ["--constraint", self.section_list("cuda")],
        }

    def packages_wanted(self) -> str:
        """Return the state of the other packages that is wanted."""
        return digest(
            *self.section("course"),
            (self.root / "environment.yml").read_text(),
            self.environ.get("MANYHANDS_TF_GPU") == "1",
        )

    def section_wanted(self, name: str) -> str:
        """Of a section of the lock that only some commands need."""
        return digest(*read_pins(self.root / LOCK, name).items())

    def course_wanted(self) -> str:
        """Return the state of what an editable installation depends on.

        That is pyproject.toml, less the settings of the test runner.
        """
        return digest(
            self.root, (self.root / "pyproject.toml").read_text().partition("[tool.pytest")[0]
        )

    def bytecode_wanted(self) -> str:
        """Return the state of the packages whose bytecode is wanted."""
        return digest("bytecode", self.torch_wanted(), self.packages_wanted())

    def horovod_wanted(self) -> str:
        """Horovod is built again when a framework or the recipe changes."""
        return digest(horovod_wheel.wheel_key({}), self.torch_wanted(), self.packages_wanted())

    def horovod_cached(self) -> bool:
        """Whether the cache has a wheel of Horovod for what is installed here."""
        folder = horovod_wheel.cache_folder(self.environ) / horovod_wheel.wheel_key(
            horovod_wheel.installed_versions(self.python)
        )
        return bool(horovod_wheel.cached_wheel(folder))

    def section(self, name: str) -> list[str]:
        """["numpy==2.4.6", ...]: the lines of one section of the lock."""
        pins = read_pins(self.root / LOCK, name)
        if not pins:
            raise StepFailedError(
                f"{LOCK} has no packages in a section [{name}]", f"restore it: git checkout {LOCK}"
            )
        return [f"{package}=={version}" for package, version in pins.items()]

    def section_list(self, name: str) -> Path:
        """Write one section of the lock as a list of requirements; returns its path."""
        path = self.prefix / f"manyhands-{name}.txt"
        path.write_text("\n".join(self.section(name)) + "\n")
        return path

    def pins(self) -> dict[str, str]:
        """Return {name: version} of every package but Horovod that `make lab` installs.

        They are the lock's section [course], less what conda provides.
        """
        pins = read_pins(self.root / LOCK, "course")
        for name in conda_provides(self.root / "environment.yml") if self.conda else ():
            pins.pop(name, None)
        return pins

    def site_packages(self) -> set[str]:
        """The names of all packages that the site brings, in pip's canonical form."""
        ask = (
            "import importlib.metadata as m, sys; "
            "print('\\n'.join(d.metadata['Name'] for d in m.distributions() if not "
            "str(d.locate_file('')).startswith(sys.prefix)))"
        )
        names = subprocess.run(
            [str(self.python), "-c", ask], stdout=subprocess.PIPE, text=True
        ).stdout
        return {re.sub(r"[-_.]+", "-", name).lower() for name in names.split()}

    def write_package_list(self) -> list[str]:
        """Write the list of requirements for step 4; returns the names."""
        pins = self.pins()
        pins.pop("torch")
        if self.site:  # what the site has stays as it is, and hides nothing: .venv lies over it
            pins = {
                name: version for name, version in pins.items() if name not in self.site_packages()
            }
        lines = [f"{name}=={version}" for name, version in pins.items()]
        if sys.platform == "darwin":  # there is no tensorflow-cpu for macOS (not tried)
            lines = [line.replace("tensorflow-cpu==", "tensorflow==") for line in lines]
        # side by side with PyTorch's CUDA: not tried
        if self.environ.get("MANYHANDS_TF_GPU") == "1":
            lines = [line.replace("tensorflow-cpu==", "tensorflow[and-cuda]==") for line in lines]
        self.package_list.write_text("\n".join(lines) + "\n")
        return list(pins)

    # -- doing it

    def environment(self) -> dict[str, str]:
        """Variables for programs of the environment: its bin folder first on PATH."""
        env = {name: value for name, value in self.environ.items() if name not in NOT_FOR_PROGRAMS}
        env["PATH"] = f"{self.prefix / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
        if not self.conda:
            env["VIRTUAL_ENV"] = str(self.prefix)
        return env

    def installer(self, steps: Steps) -> Installer:
        """Return the installer into this environment, which in an offline clone asks no index."""
        return Installer(
            self.python, {**self.environment(), **offline.settings(self.offline)}, steps, self.root
        )

    def version(self, name: str) -> str:
        """Return the version of a package in this environment, or ""."""
        return version_of(self.python, name)

    def show_site(self, base: str) -> None:
        """Let the environment see what the active one has, with its .pth files.

        What is installed here comes first.
        """
        ask = (
            "import json, sys; print(json.dumps([path for path in sys.path if "
            "path.endswith(('site-packages', 'dist-packages'))]))"
        )
        folders = json.loads(
            subprocess.run([base, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout
        )
        [packages] = self.prefix.glob("lib/python*/site-packages")
        (packages / "manyhands-site.pth").write_text(
            "".join(f"import site; site.addsitedir({folder!r})\n" for folder in folders)
        )

    def clear_prefix(self) -> None:
        """An empty folder with our mark in it; never clear a folder that somebody else made."""
        if self.prefix.exists() and not self.stamp:
            raise StepFailedError(
                f"{self.prefix} exists, but was not made by `make`",
                "move it away, then type the same command again",
            )
        shutil.rmtree(self.prefix, ignore_errors=True)
        self.check_disk()
        self.prefix.mkdir(parents=True)
        self.stamp = {"begun": True}
        self.save()

    def check_disk(self) -> None:
        """Say it before an hour of downloads, not after."""
        free, needed = (
            shutil.disk_usage(self.root).free / 1e9,
            NEEDED_GB_GPU if gpu_here() else NEEDED_GB,
        )
        if free < needed:
            raise StepFailedError(
                f"the disk has {free:.1f} GB left, and .venv needs about {needed} GB",
                "make room, then type the same command again",
            )

    def check_conda(self) -> None:
        """Raise StepFailedError if the active conda environment has no Python for the course."""
        facts = ask_python(str(self.python))
        if not facts or series(facts) not in PYTHONS:
            raise StepFailedError(
                f"the conda environment has no Python {any_of(PYTHONS)}",
                "make it from the file: conda env create -f environment.yml",
            )

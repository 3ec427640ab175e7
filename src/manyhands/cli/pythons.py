"""Which Python the course runs on: those that this machine has, or a site's own with its PyTorch.

Standard library only, and readable by Python 3.9.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from manyhands.cli.setup_steps import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


TESTED = "3.11"  # all tests run on it, and the stored outputs were made on it
PYTHONS = (TESTED, "3.12", "3.13")  # the first that is found, in this order
SITE_TORCH = (2, 13)  # the oldest PyTorch of a site's own that will do
NO_SITE_TORCH = (
    "MANYHANDS_SITE=1 asks for the PyTorch of the active environment, and {python} has {found}"
)
SITE_REMEDY = (
    "load the module or activate the environment that has PyTorch 2.13 or later, then type the same"
    " command again"
)


class Facts(TypedDict):
    """What `ask_python` tells of an interpreter."""

    version: str
    path: str
    venv: bool
    headers: bool


def find_python(environ: Mapping[str, str], wanted: Sequence[str] = PYTHONS) -> str:
    """The path of a Python with the venv module, one with header files first.

    Raises NoPythonError, StepFailedError.
    """
    asked = environ.get("MANYHANDS_PYTHON")
    pyenv = Path(environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    names = [asked] if asked else ["python3", "/usr/bin/python3"]
    for version in () if asked else wanted:
        names += [
            "python" + version,
            "/usr/bin/python" + version,
            *sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python"))),
        ]
    seen: list[str] = []
    without_venv: list[tuple[bool, int, int, str]] = []
    good: list[tuple[bool, int, int, str]] = []
    for name in names:
        path = shutil.which(name, path=environ.get("PATH"))
        facts = ask_python(path) if path else None
        if facts:
            seen.append(f"{facts['version']} ({path})")
        if facts and series(facts) in wanted:
            candidate = (
                not facts["headers"],
                wanted.index(series(facts)),
                len(good),
                facts["path"],
            )
            (good if facts["venv"] else without_venv).append(candidate)
    if good:
        return min(good)[-1]
    if without_venv:
        raise StepFailedError(
            f"{without_venv[0][-1]} lacks the venv module",
            "install it (Debian: apt-get install python3-venv)",
        )
    raise NoPythonError(
        f"no Python {any_of(wanted)} was found; found: {', '.join(dict.fromkeys(seen)) or 'none'}",
        "install one (Debian and Ubuntu: apt-get install python3 python3-venv; elsewhere: pyenv "
        f"install {wanted[-1]}, or environment.yml with conda), or name it: make lab "
        f"MANYHANDS_PYTHON=/path/to/python{wanted[-1]}",
    )


def any_of(versions: Sequence[str]) -> str:
    """ "3.11, 3.12 or 3.13"."""
    return " or ".join(filter(None, (", ".join(versions[:-1]), versions[-1])))


def find_site_python(environ: Mapping[str, str], wanted: Sequence[str] = PYTHONS) -> str:
    """The active Python, whose own PyTorch is to be used as it is.

    Raises StepFailedError where it has none, or an old one.
    """
    path = shutil.which("python3", path=environ.get("PATH"))
    facts = ask_python(path) if path else None
    if not path or not facts or series(facts) not in wanted:
        raise StepFailedError(
            f"the active python3 is {facts['version'] if facts else 'none'}, "
            f"and the course needs {any_of(wanted)}",
            SITE_REMEDY,
        )
    version = version_of(path, "torch")
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < SITE_TORCH:
        raise StepFailedError(
            NO_SITE_TORCH.format(python=path, found=f"PyTorch {version}" if version else "none"),
            SITE_REMEDY,
        )
    return facts["path"]


def version_of(python: str | Path, name: str) -> str:
    """The version of a package that this Python sees, or an empty string."""
    ask = (
        f"import importlib.metadata as m\ntry: print(m.version({name!r}))\nexcept "
        "m.PackageNotFoundError: print('')"
    )
    return subprocess.run(
        [str(python), "-c", ask], stdout=subprocess.PIPE, text=True
    ).stdout.strip()


class NoPythonError(StepFailedError):
    """This machine has no Python that the course runs on."""


def series(facts: Facts) -> str:
    """ "3.12" of what `ask_python` has told."""
    return facts["version"].rpartition(".")[0]


def ask_python(path: str) -> Facts | None:
    """What a Python interpreter is and has, or None where it does not run."""
    ask = (
        "import json, os, sys, sysconfig, importlib.util as u; "
        "print(json.dumps(dict(version='%d.%d.%d' % sys.version_info[:3], path=sys.executable, "
        "venv=bool(u.find_spec('venv') and u.find_spec('ensurepip')), "
        "headers=os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))))"
    )
    try:
        answer = subprocess.run(
            [path, "-c", ask],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=True,
        )
        return json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None

"""A user's own environment, in which clinic, rehearse and predict run.

This says what the environment lacks, and what its versions lack.
"""

import importlib.util
import os
import platform
import re
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

COMMANDS = ("clinic", "rehearse", "predict")
OLDEST_TORCH = (2, 6)
# of the extra
PACKAGES = ("matplotlib", "numpy", "psutil", *(["tomli"] if sys.version_info < (3, 11) else []))
NO_COLUMNS = (
    "Python 3.10 does not record the column of a call, so if a line contains several calls, a "
    "report may not know which one it is."
)
NO_FSDP2 = (
    "PyTorch 2.6 cannot run FSDP2 (fully_shard) on a CPU, so such a script needs 2.7 or later here."
)
NOTE = "failed-import"
HERE = os.path.dirname(os.path.abspath(__file__))


def lacking() -> str | None:
    """Why none of `COMMANDS` can run in this environment, and what to do, as a sentence.

    None where they can.
    """
    if not _installed("torch"):
        return (
            f"PyTorch is not installed for {sys.executable}. Install this package with the Python "
            "that runs your script."
        )
    if (version := torch_version()) and version < OLDEST_TORCH:
        return (
            f"This environment has PyTorch {metadata.version('torch')}, and "
            f"{'.'.join(map(str, OLDEST_TORCH))} or later is needed."
        )
    if missing := [name for name in PACKAGES if not _installed(name)]:
        return (
            f"{_listed(missing)} {'are' if len(missing) > 1 else 'is'} not installed for "
            f'{sys.executable}: pip install "manyhands[clinic]" installs what is needed.'
        )
    return None


def torch_version() -> tuple[int, ...] | None:
    """Return (2, 6) for PyTorch 2.6.0.

    None where the version is not known, as in some builds from source.
    """
    try:
        match = re.match(r"(\d+)\.(\d+)", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return None
    return tuple(map(int, match.groups())) if match else None


def notes() -> list[str]:
    """What the versions of this environment lack: a list of sentences."""
    version = torch_version()
    old_torch = version is not None and version < (2, 7)
    return [NO_COLUMNS] * (sys.version_info < (3, 11)) + [NO_FSDP2] * bool(old_torch)


def note_failed_import(folder: str | Path, error: BaseException) -> None:
    """On a rank: where an import in this package has failed, write that into the launch's folder.

    Any other error, such as one of the script, leaves nothing there.
    """
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(HERE)
    ]
    if (
        not isinstance(error, ImportError)
        or not ours
        or not (ours[-1].line or "").startswith(("import ", "from "))
    ):
        return
    note = (
        f"{type(error).__name__}: {error}. This import of manyhands failed with Python "
        f"{platform.python_version()} and PyTorch "
        f"{'.'.join(map(str, torch_version() or ['unknown']))}. The script is not the cause."
    )
    Path(folder, NOTE).write_text(note)


def failed_import(folder: str | Path) -> str | None:
    """What a rank has noted so, or None."""
    return Path(folder, NOTE).read_text() if Path(folder, NOTE).exists() else None


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

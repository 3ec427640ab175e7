"""A user's own environment, in which clinic, rehearse and predict run: what it lacks, and what its versions lack."""

import importlib.util
import re
import sys
from importlib import metadata

COMMANDS = ("clinic", "rehearse", "predict")
OLDEST_TORCH = (2, 6)
PACKAGES = ("matplotlib", "numpy", "psutil", *(["tomli"] if sys.version_info < (3, 11) else []))  # of the extra
NO_COLUMNS = ("Python 3.10 does not record in which column a call is written: reports name its line, but not which of "
              "several calls in that line it is.")


def lacking():
    """Why none of `COMMANDS` can run in this environment, and what to do, as a sentence; None where they can."""
    if not _installed("torch"):
        return (f"PyTorch is not installed for {sys.executable}. Install this package with the Python that runs your "
                "script.")
    if (found := torch_version()) and found < OLDEST_TORCH:
        return (f"This environment has PyTorch {metadata.version('torch')}, and {'.'.join(map(str, OLDEST_TORCH))} or "
                "later is needed.")
    if missing := [name for name in PACKAGES if not _installed(name)]:
        return (f"{_listed(missing)} {'are' if len(missing) > 1 else 'is'} not installed for {sys.executable}: "
                'pip install "manyhands[clinic]" brings what is needed.')
    return None


def torch_version():
    """(2, 6) of PyTorch 2.6.0; None where the version is not known, as in some builds from source."""
    try:
        found = re.match(r"(\d+)\.(\d+)", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return None
    return found and tuple(map(int, found.groups()))


def notes():
    """What the versions of this environment lack: a list of sentences."""
    return [NO_COLUMNS] if sys.version_info < (3, 11) else []


def _installed(name):
    return importlib.util.find_spec(name) is not None


def _listed(names):
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

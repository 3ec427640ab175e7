"""The sdist and the wheel of this clone, built as a release builds them.

However, the build has no network, so it uses the setuptools that is installed here.
"""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASK = "from setuptools import build_meta; build_meta.build_{}({!r})"


def build(folder):
    """(the sdist, the wheel that is built from it), in a new folder.

    Built from a copy of the sources, because a build leaves files next to them.
    """
    sources, made = folder / "sources", folder / "made"
    shutil.copytree(
        ROOT / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, sources)
    made.mkdir()
    _build("sdist", sources, made)
    [sdist] = made.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    [unpacked] = (folder / "unpacked").iterdir()
    _build("wheel", unpacked, made)
    [wheel] = made.glob("*.whl")
    return sdist, wheel


def _build(kind, sources, made):
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(kind, str(made))],
        cwd=sources,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""The real ChainerMN 7.8.1 in a separate environment.

It needs a numpy that torch no longer takes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# Chainer is built from its source archive, which asks for this setuptools
STEPS = (
    ("setuptools<70", "wheel"),
    ("--no-build-isolation", "numpy==1.23.5", "chainer==7.8.1", "mpi4py==4.1.2", "mpich==5.0.2"),
)


def python():
    """The path of a Python that can import chainermn.

    Made with pip at the first call: half a minute, 200 MB.
    """
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manyhands" / "chainermn"
    )
    interpreter = cache / "bin" / "python"
    if (cache / "complete").exists():
        return interpreter
    print(
        f"making {cache} (ChainerMN 7.8.1 with numpy 1.23.5; delete the folder when you like)",
        file=sys.stderr,
        flush=True,
    )
    shutil.rmtree(cache, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True)
    for words in STEPS:
        subprocess.run(
            [
                str(interpreter),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *words,
            ],
            check=True,
        )
    (cache / "complete").touch()
    return interpreter

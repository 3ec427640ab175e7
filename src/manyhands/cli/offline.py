"""`make offline`: the folder `offline/`, with all that the set-up fetches.

The clone with it, carried to a machine without a network, sets up there.

    offline/made_for.json     {"python": "3.12", "torch": "2.13.0+cpu"}
    offline/wheels/           every package of the list, PyTorch with what it brings
    offline/horovod/KEY/      the built wheel, as in the cache
    offline/proxy-*/          the proxy of `manyhands hub`, installed by npm

Standard library only, and readable by Python 3.9.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

from manyhands.cli import horovod_wheel

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from manyhands.cli.setup_plan import Plan
    from manyhands.cli.setup_steps import Steps


NAME = "offline"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # where uv has PyTorch's CPU build from


def folder_of(root: Path) -> Path | None:
    """The folder of a clone that was carried here with it, or None."""
    return root / NAME if (root / NAME / "made_for.json").is_file() else None


def made_for(folder: Path) -> dict[str, Any]:
    """Return the versions of Python and PyTorch that the folder was made for."""
    return json.loads((folder / "made_for.json").read_text())


def settings(folder: Path | None) -> dict[str, str]:
    """pip's settings (and so uv's): only what lies in the folder."""
    return (
        {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(folder / "wheels"),
            "PIP_CONFIG_FILE": "/dev/null",
        }
        if folder
        else {}
    )


def unpack(folder: Path, root: Path) -> None:
    """Put in place what pip and uv do not install.

    Horovod's wheel goes into the cache, the hub's proxy into the clone.
    """
    for source, target in (
        (folder / "horovod", horovod_wheel.cache_folder()),
        (folder, root / ".manyhands"),
    ):
        for part in source.glob("*" if source.name == "horovod" else "proxy-*"):
            if not (target / part.name).exists():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copytree(part, target / part.name, symlinks=True)


def write(plan: Plan, steps: Steps, torch: str) -> None:
    """Make the folder from an environment that is set up; `torch` is its PyTorch's version.

    What was there is replaced when all is there.
    """
    new, folder = plan.root / f".{NAME}.new", plan.root / NAME
    shutil.rmtree(new, ignore_errors=True)
    wheels, installer = new / "wheels", plan.installer(steps)
    wheels.mkdir(parents=True)

    def download(*arguments: str | Path) -> None:
        steps.call(
            installer.pip("download", "--quiet", "--dest", wheels, *arguments),
            env=plan.environment(),
        )

    steps.begin("packages")
    download("--no-deps", "--requirement", plan.package_list)
    download("--no-deps", "--requirement", plan.section_list("dev"))
    steps.end(f"{len(list(wheels.iterdir()))} files")
    steps.begin("PyTorch")
    source = plan.torch_source() or (
        ["--extra-index-url", CPU_INDEX] if torch.endswith("+cpu") else []
    )
    download("--constraint", plan.section_list("course"), f"torch=={torch}", *source)
    steps.end(torch)
    steps.begin("Horovod and the hub's proxy")
    key = horovod_wheel.wheel_key(horovod_wheel.installed_versions(plan.python))
    if not plan.horovod_cached():
        steps.note(
            "Horovod's wheel is not in the cache, so it is left out: `make setup` tries to build it"
        )
    else:
        shutil.copytree(horovod_wheel.cache_folder(plan.environ) / key, new / "horovod" / key)
    ask = (
        "from manyhands.hub.services import proxy; "
        f"proxy.command({str(plan.root / '.manyhands')!r})"
    )
    steps.call([plan.python, "-c", ask], env=plan.environment())
    for part in (plan.root / ".manyhands").glob("proxy-*"):
        shutil.copytree(part, new / part.name, symlinks=True)
    (new / "made_for.json").write_text(
        json.dumps({"python": plan.stamp["python"], "torch": torch}) + "\n"
    )
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    size = subprocess.run(
        ["du", "-sh", str(folder)], stdout=subprocess.PIPE, text=True
    ).stdout.split()[0]
    steps.end(f"{folder.name}/ has {size}")

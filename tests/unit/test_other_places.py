"""The files for VS Code, Codespaces and Kubernetes agree with what they name.

They cannot be tried here.
"""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml

from manyhands.units import units

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
VALUES = yaml.safe_load((ROOT / "docker/z2jh-values.yaml").read_text())
STARTS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
assert shell.run_cell({commands!r}, silent=True, store_history=False).success
shell.user_ns["__vsc_ipynb_file__"] = "06_ddp_tutorial.ipynb"
assert not shell.run_cell("%%px\\nrank").success
assert not shell.run_cell("cluster").success
"""


def test_a_devcontainer_takes_the_images_python_for_notebooks():
    made = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    code = made["customizations"]["vscode"]
    folder = re.search(r"^WORKDIR (/opt/\S+)$", DOCKERFILE, re.MULTILINE)[1]
    assert code["settings"]["python.defaultInterpreterPath"] == f"{folder}/.venv/bin/python"
    assert set(code["extensions"]) == set(
        json.loads((ROOT / ".vscode/extensions.json").read_text())["recommendations"]
    )
    assert (
        f"AS {made['build']['target']}\n" in DOCKERFILE and f" {made['remoteUser']}\n" in DOCKERFILE
    )


def test_a_new_kernel_of_vs_code_says_what_to_do():
    settings = json.loads((ROOT / ".vscode/settings.json").read_text())
    program = STARTS.format(commands="\n".join(settings["jupyter.runStartupCommands"]))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (
        "This kernel has no cluster yet" in done.stdout
        and "so cluster is not defined" in done.stdout
    )


def test_the_values_for_kubernetes_name_what_is_there():
    person = VALUES["singleuser"]
    assert person["image"] == {"name": "REGISTRY/manyhands", "tag": "cpu"} and find_spec(
        person["cmd"][2]
    )
    home = re.search(r"useradd --uid (\d+) --create-home .*? (\w+)$", DOCKERFILE, re.MULTILINE)
    assert (
        person["uid"] == int(home[1]) and person["storage"]["homeMountPath"] == f"/home/{home[2]}"
    )
    assert VALUES["hub"]["config"]["JupyterHub"]["authenticator_class"] == "null", (
        "nobody logs in before somebody has chosen who may"
    )


def test_each_profile_holds_the_units_that_it_names():
    """Their measured memory, and 1.5 GB for JupyterLab and a second notebook."""
    memory = {unit.number: unit.memory_gib for unit in units(ROOT)}
    for profile in VALUES["singleuser"]["profileList"]:
        limit = profile.get("kubespawner_override", {}).get(
            "mem_limit", VALUES["singleuser"]["memory"]["limit"]
        )
        named = re.findall(r"\b\d\d\b", profile["display_name"]) or list(memory)
        for number in named:
            assert memory[number] * 1.074 + 1.5 <= int(limit.removesuffix("G")), (
                profile["display_name"],
                number,
            )
    slugs = [profile["slug"] for profile in VALUES["singleuser"]["profileList"]]
    assert (
        len(set(slugs)) == len(slugs)
        and sum(profile.get("default", False) for profile in VALUES["singleuser"]["profileList"])
        == 1
    )

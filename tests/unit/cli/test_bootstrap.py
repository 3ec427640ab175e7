"""The set-up, with a stand-in for Python that notes what it is asked to do.

Nothing is downloaded or installed here.
"""

import ast
import errno
import io
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

import pytest

from manyhands.cli import bootstrap, horovod_wheel, setup_horovod, setup_plan
from manyhands.cli import pythons as pythons_module
from manyhands.cli.installers import SAME, Installer, fetch_python, pip_config
from manyhands.cli.setup_steps import StepFailedError, Steps, explain

ROOT = Path(__file__).resolve().parents[3]
EARLY = [
    "__init__.py",
    "machine.py",
    "cli/__init__.py",
    "cli/bootstrap.py",
    "cli/installers.py",
    "cli/offline.py",
    "cli/pythons.py",
    "cli/setup_horovod.py",
    "cli/setup_later.py",
    "cli/setup_plan.py",
    "cli/setup_steps.py",
    "cli/horovod_wheel.py",
]

STAND_IN = """#!{python} -IS
import json, os, shutil, sys
said = " ".join(sys.argv[1:])
with open(os.environ["CALLS"], "a") as calls:
    calls.write(said.replace("\\n", " ") + "\\n")
if os.environ.get("FAIL") and os.environ["FAIL"] in said:
    sys.exit(os.environ.get("FAIL_SAYING", "it failed"))
if sys.argv[1:3] == ["-m", "venv"]:
    os.makedirs(sys.argv[3] + "/bin", exist_ok=True)
    shutil.copy(sys.argv[0], sys.argv[3] + "/bin/python")
elif " uv==" in said:
    shutil.copy(sys.argv[0], os.path.dirname(sys.argv[0]) + "/uv")
elif "--managed-python" in said:
    print("/fetched/python3.13")
elif said.endswith("config list"):
    print(os.environ.get("PIP_SAYS", ""))
elif "json.dumps(found" in said:
    print(json.dumps(dict(torch=os.environ.get("TORCH", "2.13.0+cpu"))))
elif "json.dumps" in said:
    print(json.dumps(dict(version=os.environ.get("VERSION", "3.11.9"), path=sys.argv[0], venv=not os.environ.get("NO_VENV"), headers=True)))
elif "m.version" in said:
    print(os.environ.get("TORCH", "2.13.0+cpu"))
elif "get_path" in said:
    print("/nowhere" if os.environ.get("NO_HEADERS") else "{include}")
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with the real lists of packages, where every Python is the stand-in."""
    root, folder = tmp_path / "clone", tmp_path / "bin"
    for path in (root, folder, tmp_path / "include"):
        path.mkdir()
    for name in ("constraints.txt", "environment.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    (tmp_path / "include" / "Python.h").touch()
    stand_in = STAND_IN.format(python=sys.executable, include=tmp_path / "include")
    for name in ("python3.11", "g++", "make"):
        (folder / name).write_text(stand_in)
        (folder / name).chmod(0o755)
    for name in (
        "FAIL",
        "VERSION",
        "NO_VENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "MANYHANDS_PYTHON",
        "MANYHANDS_TF_GPU",
        "MANYHANDS_TORCH_INDEX",
        "MANYHANDS_TORCH_FIND_LINKS",
        "MANYHANDS_PIP",
        "UV_TORCH_BACKEND",
        "CXX",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(setup_horovod, "NO_SKIPS", False)
    monkeypatch.setattr(setup_plan, "gpu_here", lambda: False)
    monkeypatch.setattr(
        pythons_module, "find_python", lambda environ, wanted: str(folder / "python3.11")
    )
    monkeypatch.setattr(horovod_wheel, "build", build_nothing)
    return root


def build_nothing(python, folder, call, alone):
    """In place of four minutes of compiling."""
    call([python, "-m", "pip", "wheel", "horovod"], None, None)
    folder.mkdir()
    (folder / "horovod-0.28.1-any.whl").touch()


def calls():
    """The pip commands that ran since the last look."""
    path = Path(os.environ["CALLS"])
    lines = path.read_text().splitlines() if path.exists() else []
    path.write_text("")
    return [
        line
        for line in lines
        if ("pip " in line or "-m venv" in line) and not line.endswith("config list")
    ]


def test_a_bare_clone_is_set_up_in_five_steps_and_the_second_start_does_nothing(clone, capsys):
    python = bootstrap.set_up(clone)
    assert python == clone / ".venv" / "bin" / "python"
    assert re.findall(r"\[(\d)/5\]", capsys.readouterr().out)[-1] == "5"
    made = calls()
    assert [
        word
        for line in made
        for word in ("-m venv", "torch==", "--requirement", "--editable", "pip wheel", ".whl")
        if word in line
    ][:6] == ["-m venv", "torch==", "--requirement", "--editable", "pip wheel", ".whl"]
    begun = time.monotonic()
    bootstrap.set_up(clone)
    assert calls() == [] and time.monotonic() - begun < 2
    assert capsys.readouterr().out == ""


def test_programs_do_not_see_what_make_was_told(tmp_path):
    environ = {
        "PATH": "/usr/bin",
        "HOME": "/home/learner",
        "MAKEFLAGS": " -- ARGS=-x",
        "ARGS": "-x",
        "PYTHONHOME": "/elsewhere",
    }
    env = setup_plan.Plan(tmp_path, environ).environment()
    assert env == {
        "PATH": f"{tmp_path}/.venv/bin:/usr/bin",
        "HOME": "/home/learner",
        "VIRTUAL_ENV": f"{tmp_path}/.venv",
    }


def test_torch_alone_may_bring_dependencies(clone):
    bootstrap.set_up(clone)
    uv, torch, packages = [line for line in calls() if " install " in line][:3]
    assert " uv==" in uv
    assert "--no-deps" not in torch and "--constraint" in torch and torch.count("==") == 1
    assert "--no-deps" in packages
    listed = (clone / ".venv" / "manyhands-packages.txt").read_text()
    assert (
        "tensorflow-cpu==" in listed and "\ntensorflow==" not in listed and "torch==" not in listed
    )
    assert "\nuv==" in listed, "`make offline` fetches this list, and an offline set-up needs uv"


# -- uv, which pip installs


def test_uv_installs_and_asks_the_machine_which_pytorch(clone):
    bootstrap.set_up(clone)
    installed = [line for line in calls() if " install " in line]
    uv, torch, packages, course = installed[:4]
    assert uv.startswith("-m pip ") and " uv==" in uv
    assert all(line.startswith("pip install") for line in installed[1:])
    python = f"--python {clone / '.venv' / 'bin' / 'python'}"
    assert all(python in line for line in (torch, packages, course))
    assert "--torch-backend auto" in torch and "manyhands-cuda" not in torch and "torch==" in torch
    assert "--no-deps --requirement" in packages and "--editable" in course


def test_who_names_a_place_for_pytorch_gets_it_from_there(clone, monkeypatch):
    monkeypatch.setenv("MANYHANDS_TORCH_FIND_LINKS", "/wheels")
    bootstrap.set_up(clone)
    torch = next(line for line in calls() if "torch==" in line)
    assert "--find-links /wheels" in torch and "--torch-backend" not in torch


@pytest.mark.parametrize(("backend", "options"), [("cu130", "--torch-backend cu130"), ("", None)])
def test_uvs_own_variable_names_the_build_of_pytorch_or_the_ordinary_index(
    clone, monkeypatch, backend, options
):
    """The images of docker/ are built on machines without a GPU, from the user's own index."""
    monkeypatch.setenv("UV_TORCH_BACKEND", backend)
    bootstrap.set_up(clone)
    [torch] = [line for line in calls() if "torch==" in line]
    assert options in torch if options else "--torch-backend" not in torch
    assert ("manyhands-cuda.txt" in torch) is (options is None)
    plan = setup_plan.Plan(clone, os.environ)
    assert "UV_TORCH_BACKEND" not in plan.installer(None).uv_environment({})  # uv refuses ""


def test_where_torchs_own_index_cannot_be_reached_uv_asks_the_ordinary_one(
    clone, monkeypatch, capsys
):
    """An institute's mirror."""
    monkeypatch.setenv("FAIL", "--torch-backend")
    monkeypatch.setenv(
        "FAIL_SAYING", "error: Could not connect, are you offline? Connection refused"
    )
    bootstrap.set_up(clone)
    torch = [line for line in calls() if "torch==" in line]
    assert (
        len(torch) == 2 and "--torch-backend" not in torch[1] and "manyhands-cuda.txt" in torch[1]
    )
    assert (
        "uv could not do this with --torch-backend auto (there is no network, or the package index "
        "cannot be reached), so it now asks the ordinary package index" in capsys.readouterr().out
    )


def test_what_uv_cannot_install_ends_the_step(clone, monkeypatch):
    monkeypatch.setenv("FAIL", " --python ")
    monkeypatch.setenv(
        "FAIL_SAYING", "error: Could not connect, are you offline? Connection refused"
    )
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    assert len([line for line in calls() if "torch==" in line]) == 2
    text = str(stop.value)
    assert "[3/5] PyTorch failed" in text and "there is no network" in text


NO_UV = "ERROR: No matching distribution found for uv==9"


def test_where_pip_cannot_get_uv_one_message_says_what_to_do(clone, monkeypatch):
    monkeypatch.setenv("FAIL", " uv==")
    monkeypatch.setenv("FAIL_SAYING", NO_UV)
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    text = str(stop.value)
    assert "[2/5] virtual environment failed" in text and "could not install uv==" in text
    assert "does not have uv==9" in text and "no uv on PATH" in text and "PIP_INDEX_URL" in text
    assert "install uv so that it is on PATH" in text and "PIP_FIND_LINKS" in text
    assert not any("torch==" in line for line in calls())
    monkeypatch.delenv("FAIL")
    bootstrap.set_up(clone)
    assert any("torch==" in line for line in calls())


def test_where_pip_cannot_get_uv_the_one_on_path_serves(clone, monkeypatch, capsys):
    other = Path(os.environ["PATH"]) / "uv"
    shutil.copy(other.with_name("python3.11"), other)
    monkeypatch.setenv("FAIL", " uv==")
    monkeypatch.setenv("FAIL_SAYING", NO_UV)
    bootstrap.set_up(clone)
    assert any(line.startswith("pip install") and "torch==" in line for line in calls())
    assert f"(the package index does not have uv==9), so {other} is used" in capsys.readouterr().out


def test_an_environment_that_has_no_uv_gets_it(clone):
    """It was made by an earlier version, with pip, or it is conda's."""
    bootstrap.set_up(clone)
    (clone / ".venv" / "bin" / "uv").unlink()
    lock = clone / "constraints.txt"
    lock.write_text(lock.read_text().replace("psutil==", "psutil==1", 1))
    calls()
    bootstrap.set_up(clone)
    made = [line for line in calls() if " install " in line]
    assert " uv==" in made[0] and made[1].startswith("pip install") and len(made) == 3


def test_who_asked_for_pip_alone_is_told_that_uv_installs(clone, monkeypatch, capsys):
    monkeypatch.setenv("MANYHANDS_PIP", "1")
    bootstrap.set_up(clone)
    assert "MANYHANDS_PIP is no longer used" in capsys.readouterr().out
    assert any(line.startswith("pip install") for line in calls())


def test_what_pip_is_told_uv_is_told(clone):
    """The environment wins over files, and what is said to uv itself over both.

    uv wants commas between places of wheels.
    """
    config = pip_config(
        "\n".join(
            [
                ":env:.index-url='https://mirror/simple'",
                ":env:.disable-pip-version-check='1'",
                ":env:.default-timeout='180'",
                "global.cert='/etc/ca.pem'",
                "global.extra-index-url='https://one/simple\\nhttps://two/simple'",
                "global.index-url='https://other/simple'",
                "install.find-links='/a /b'",
                "user.proxy='http://proxy:3128'",
                "global.no-index='true'",
            ]
        )
    )
    assert config["no-index"] == "true"
    variables = Installer(
        clone / "bin" / "python", {"SSL_CERT_FILE": "/mine.pem"}, None, clone
    ).uv_environment(config)
    assert {name: variables[name] for name in SAME.values() if name in variables} == {
        "UV_DEFAULT_INDEX": "https://mirror/simple",
        "SSL_CERT_FILE": "/mine.pem",
        "UV_INDEX": "https://one/simple https://two/simple",
        "UV_FIND_LINKS": "/a,/b",
        "ALL_PROXY": "http://proxy:3128",
        "UV_HTTP_TIMEOUT": "180",
    }


@pytest.mark.parametrize("files", [[], ["institute.pem"]])
def test_uv_trusts_the_certificates_of_the_machine_where_there_are_some(
    tmp_path, monkeypatch, files
):
    """As pip does; a bare container has none, and uv then has its own."""
    (tmp_path / "certs").mkdir()
    for name in files:
        (tmp_path / "certs" / name).touch()
    paths = ssl.get_default_verify_paths()._replace(cafile=None, capath=str(tmp_path / "certs"))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    env = Installer(tmp_path / "bin" / "python", {}, None, tmp_path).uv_environment({})
    assert env.get("UV_SYSTEM_CERTS") == ("1" if files else None)


def test_a_machine_without_a_python_for_the_course_gets_one_by_uv(clone, monkeypatch):
    lack = pythons_module.NoPythonError("none", "install one")
    monkeypatch.setattr(sys, "executable", str(Path(os.environ["PATH"]) / "python3.11"))
    assert fetch_python(clone, Steps(1, clone / "log"), lack) == "/fetched/python3.13"
    lines = Path(os.environ["CALLS"]).read_text().splitlines()
    assert "python install 3.13" in lines and "python find --managed-python 3.13" in lines
    monkeypatch.setenv("FAIL", "python install")
    with pytest.raises(pythons_module.NoPythonError):
        fetch_python(clone, Steps(1, clone / "log"), lack)


def test_a_list_that_a_command_needs_is_installed_once_and_not_for_the_others(clone, monkeypatch):
    monkeypatch.setattr(bootstrap, "ROOT", clone)
    monkeypatch.setattr(bootstrap.set_up, "__defaults__", (clone, False, False))
    ran = []
    monkeypatch.setattr(bootstrap.os, "execve", lambda path, words, env: ran.append(words[1:]))
    bootstrap.main(["run", "manyhands", "lab"])
    assert not [line for line in calls() if "manyhands-dev.txt" in line]
    bootstrap.main(["run", "--with", "dev", "manyhands", "site"])
    [line] = calls()
    assert (
        "install" in line
        and "--no-deps --requirement" in line
        and line.endswith("manyhands-dev.txt")
    )
    bootstrap.main(["run", "--with", "dev", "pytest"])
    assert calls() == [] and ran == [
        ["-m", "manyhands", "lab"],
        ["-m", "manyhands", "site"],
        ["-m", "pytest"],
    ]


def test_only_what_changed_is_done_again(clone):
    bootstrap.set_up(clone)
    calls()
    lock = clone / "constraints.txt"
    lock.write_text(lock.read_text().replace("psutil==", "psutil==1", 1))
    bootstrap.set_up(clone)
    again = calls()
    assert not any("torch==" in line or "-m venv" in line or "pip wheel" in line for line in again)
    assert any("--requirement" in line for line in again)
    settings = clone / "pyproject.toml"
    settings.write_text(settings.read_text() + "\n# a setting of pytest\n")
    bootstrap.set_up(clone)
    assert calls() == []


def test_another_place_for_pytorch_is_used_and_remembered(clone, monkeypatch):
    bootstrap.set_up(clone)
    torch = next(line for line in calls() if "torch==" in line)
    assert "--force-reinstall" not in torch and "--torch-backend" in torch
    monkeypatch.setenv("MANYHANDS_TORCH_INDEX", "file:///elsewhere")
    bootstrap.set_up(clone)
    torch = next(line for line in calls() if "torch==" in line)
    assert (
        "--extra-index-url file:///elsewhere" in torch
        and "--force-reinstall" in torch
        and "--torch-backend" not in torch
    )
    monkeypatch.delenv("MANYHANDS_TORCH_INDEX")
    bootstrap.set_up(clone)
    assert calls() == []


def test_an_interrupted_part_is_written_again_whole(clone, monkeypatch, capsys):
    monkeypatch.setenv("FAIL", "--requirement")
    with pytest.raises(SystemExit):
        bootstrap.set_up(clone)
    calls()
    monkeypatch.delenv("FAIL")
    bootstrap.set_up(clone)
    again = calls()
    assert "--force-reinstall" in next(line for line in again if "--requirement" in line)
    assert not any("-m venv" in line or "torch==" in line for line in again)


def test_an_interrupted_virtual_environment_is_made_again(clone, monkeypatch):
    monkeypatch.setenv("FAIL", "-m venv")
    with pytest.raises(SystemExit):
        bootstrap.set_up(clone)
    monkeypatch.delenv("FAIL")
    assert bootstrap.set_up(clone).exists()


def test_a_new_environment_whose_python_does_not_answer_is_told(clone, monkeypatch):
    monkeypatch.setattr(pythons_module, "ask_python", lambda path: None)
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    text = str(stop.value)
    assert "[2/5] virtual environment failed" in text and "python did not answer" in text


def test_a_moved_clone_gets_a_new_environment(clone, tmp_path):
    bootstrap.set_up(clone)
    calls()
    moved = clone.rename(tmp_path / "moved")
    bootstrap.set_up(moved)
    assert any("-m venv" in line for line in calls())


def test_somebody_elses_environment_is_left_alone(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "mine").touch()
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    assert "was not made by" in str(stop.value) and (clone / ".venv" / "mine").exists()


def test_a_failed_step_says_which_why_what_to_do_and_where_the_log_is(clone, monkeypatch):
    monkeypatch.setenv("FAIL", "torch==")
    monkeypatch.setenv(
        "FAIL_SAYING",
        "WARNING: Retrying: NewConnectionError: [Errno -3] Temporary failure in name resolution",
    )
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    text = str(stop.value)
    assert "[3/5] PyTorch failed" in text and "no network" in text and "HTTPS_PROXY" in text
    assert str(clone / ".manyhands" / "setup.log") in text and "| WARNING: Retrying" in text


def test_a_full_disk_is_told_before_and_during(clone, monkeypatch):
    usage = shutil.disk_usage(clone)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=3e9))
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    assert "the disk has 3.0 GB left" in str(stop.value)
    why, remedy = setup_plan.explain_os_error(OSError(errno.ENOSPC, "No space left on device"))
    assert why == "the disk is full" and "make room" in remedy


def test_without_a_compiler_everything_but_horovod_is_set_up(clone, monkeypatch, capsys):
    (Path(os.environ["PATH"]) / "g++").unlink()
    bootstrap.set_up(clone)
    text = capsys.readouterr().out
    assert (
        "not found: a C++ compiler" in text and "apt-get install g++" in text and "unit 10" in text
    )
    assert not any("pip wheel" in line for line in calls())
    bootstrap.set_up(clone)
    assert "Horovod was not built" in capsys.readouterr().out and calls() == []
    (Path(os.environ["PATH"]) / "g++").symlink_to("make")
    bootstrap.set_up(clone)
    assert any("pip wheel" in line for line in calls())
    capsys.readouterr()
    bootstrap.set_up(clone)
    assert capsys.readouterr().out == "" and calls() == []


def test_a_failed_build_of_horovod_stops_only_a_run_without_skips(clone, monkeypatch, capsys):
    monkeypatch.setenv("FAIL", "pip wheel")
    monkeypatch.setenv("FAIL_SAYING", "x.cc:1:10: fatal error: Python.h: No such file or directory")
    bootstrap.set_up(clone)
    assert "Python's header files are missing" in capsys.readouterr().out
    calls()
    bootstrap.set_up(clone)
    assert calls() == []
    monkeypatch.setattr(setup_horovod, "NO_SKIPS", True)
    with pytest.raises(SystemExit) as stop:
        bootstrap.set_up(clone)
    assert "[5/5] Horovod" in str(stop.value)
    monkeypatch.delenv("FAIL")
    bootstrap.set_up(clone)
    assert any("pip wheel" in line for line in calls())


def test_cuda_that_nobody_can_use_is_told(clone, monkeypatch, capsys, tmp_path):
    stand_in = Path(os.environ["PATH"]) / "python3.11"
    stand_in.write_text(
        stand_in.read_text()
        + 'if "torch==" in said: print("Downloading nvidia-cublas (403.5MiB)")\n'
    )
    bootstrap.set_up(clone)
    assert "make lab TORCH_INDEX=" in capsys.readouterr().out


def test_a_gpu_that_goes_unused_is_told(clone, monkeypatch, capsys):
    monkeypatch.setattr(setup_plan, "gpu_here", lambda: True)
    bootstrap.set_up(clone)
    assert "CPU build" in capsys.readouterr().out


def test_tensorflow_for_gpus_only_on_request(clone, monkeypatch):
    monkeypatch.setenv("MANYHANDS_TF_GPU", "1")
    bootstrap.set_up(clone)
    assert "tensorflow[and-cuda]==" in (clone / ".venv" / "manyhands-packages.txt").read_text()


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))", "certificate"),
        (
            (
                "error: Failed to fetch: `https://x/simple/torch/`\n  Caused by: invalid peer "
                "certificate: UnknownIssuer"
            ),
            "certificate",
        ),
        (
            (
                "error: Could not connect, are you offline?\n  Caused by: dns error: failed to "
                "lookup address information"
            ),
            "no network",
        ),
        ("ERROR: No matching distribution found for torch==9.9", "does not have torch==9.9"),
        (
            "  cause: Because there is no version of torch==9.9 and you require torch==9.9, we can",
            "does not have torch==9.9",
        ),
        ("  cause: Because torch was not found in the package registry and", "not have torch"),
        ("Because torch==2.4.0 has no wheels with a matching Python ABI tag", "have torch==2.4.0"),
        ("  cause: HTTP status server error (503 Service Unavailable) for url", "no network"),
        ("Failed to download distribution due to network timeout. Try", "no network"),
        (
            (
                "The virtual environment was not created successfully because ensurepip is not "
                "available."
            ),
            "venv module",
        ),
        ("c++: fatal error: Killed signal terminated program cc1plus", "not enough memory"),
        ("something nobody has seen before", "a command failed"),
    ],
)
def test_reasons(log, why):
    assert why in explain(log)[0]


# -- which Python


@pytest.fixture
def pythons(tmp_path, monkeypatch):
    """A machine that has just the Pythons that the test makes: `pythons("python3", "3.12.1")`."""
    monkeypatch.setattr(
        pythons_module.shutil,
        "which",
        lambda name, path=None: str(tmp_path / name) if name in os.listdir(tmp_path) else None,
    )

    def make(name, version, venv=True, headers=True):
        (tmp_path / name).write_text(
            "#!/bin/sh\ncat <<E\n"
            + json.dumps(
                {"version": version, "path": str(tmp_path / name), "venv": venv, "headers": headers}
            )
            + "\nE\n"
        )
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    return make


def test_python_311_is_found_under_either_name(pythons, tmp_path):
    pythons("python3", "3.13.0")
    right = pythons("python3.11", "3.11.9")
    assert pythons_module.find_python({"PYENV_ROOT": str(tmp_path)}) == right


def test_a_python_with_header_files_is_preferred(pythons, tmp_path):
    pythons("python3.11", "3.11.9", headers=False)
    right = pythons("python3", "3.11.2")
    assert pythons_module.find_python({"PYENV_ROOT": str(tmp_path)}) == right


def test_the_wrong_python_is_told_with_what_was_found(pythons, tmp_path):
    pythons("python3", "3.10.1")
    with pytest.raises(pythons_module.NoPythonError) as stop:
        pythons_module.find_python({"PYENV_ROOT": str(tmp_path)})
    assert "3.10.1" in stop.value.why and "MANYHANDS_PYTHON" in stop.value.remedy


@pytest.mark.parametrize("version", ["3.12.3", "3.13.0"])
def test_the_python_that_people_have_will_do(pythons, tmp_path, version):
    there = pythons("python3", version)
    assert pythons_module.find_python({"PYENV_ROOT": str(tmp_path)}) == there


def test_a_python_without_venv_is_told(pythons, tmp_path):
    pythons("python3.11", "3.11.2", venv=False)
    with pytest.raises(StepFailedError) as stop:
        pythons_module.find_python({"PYENV_ROOT": str(tmp_path)})
    assert "lacks the venv module" in stop.value.why and "python3-venv" in stop.value.remedy


def test_a_very_old_python_gets_a_message_and_no_traceback():
    code = (
        "import sys; sys.version_info = (3, 8, 10); "
        f"exec(open({str(ROOT / 'src/manyhands/cli/bootstrap.py')!r}).read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (
        done.returncode == 1
        and "needs Python 3.11" in done.stderr
        and "Traceback" not in done.stderr
    )


@pytest.mark.parametrize("name", EARLY)
def test_what_runs_before_the_set_up_is_standard_library_and_old_syntax(name):
    tree = ast.parse((ROOT / "src" / "manyhands" / name).read_text(), feature_version=(3, 9))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    assert [
        module
        for module in imported
        if module.split(".")[0] not in sys.stdlib_module_names
        and module.split(".")[0] != "manyhands"
    ] == []


def test_the_list_of_what_runs_before_the_set_up_is_whole_and_the_image_gets_all_of_it():
    sources = {name: (ROOT / "src" / "manyhands" / name).read_text() for name in EARLY}
    named = {
        f"cli/{module}.py"
        for text in sources.values()
        for line in re.findall(
            r"^from manyhands\.cli(?:\.(\w+) import .*| import ([^#\n]*?))(?:  #.*)?$", text, re.M
        )
        for module in re.split(r", ", "".join(line))
    }
    named |= {
        f"{module}.py"
        for text in sources.values()
        for module in re.findall(r"^from manyhands import (\w+)$", text, re.M)
    }
    assert named | {"__init__.py", "cli/__init__.py", "cli/bootstrap.py"} == set(EARLY)
    before, _, _ = (ROOT / "docker" / "Dockerfile").read_text().partition("bootstrap.py setup")
    copied = re.findall(r"src/manyhands/([\w/*]+(?:\.py)?)", before)
    assert [name for name in EARLY if not any(fnmatch(name, pattern) for pattern in copied)] == []


# -- steps


def test_steps_count_and_keep_a_log(tmp_path, capsys):
    steps = Steps(2, tmp_path / "log" / "setup.log")
    steps.begin("first")
    steps.call(["/bin/sh", "-c", "echo out; echo err >&2"])
    steps.end("done")
    assert capsys.readouterr().out.splitlines()[-1] == "[1/2] first: done (0 s)"
    assert {"out", "err"} <= set((tmp_path / "log" / "setup.log").read_text().splitlines())


def test_an_interruption_ends_the_command_and_its_children(tmp_path):
    code = f"""
import sys; sys.path[0] = {str(ROOT / "src")!r}
from pathlib import Path
from manyhands.cli.setup_steps import Steps
steps = Steps(1, Path({str(tmp_path / "log")!r})); steps.begin("x")
steps.call(["/bin/sh", "-c", "sleep 77 & echo $! > {tmp_path}/child; echo begun; wait"])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # a shell's background jobs ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    child = tmp_path / "child"
    for _ in range(200):
        if (tmp_path / "log").exists() and "\nbegun\n" in (tmp_path / "log").read_text():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.wait(20)
    pid = int(child.read_text())
    for _ in range(100):
        if (
            not Path(f"/proc/{pid}").exists()
            or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]
        ):
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the command's child outlived the interruption")


# -- without a network, and with a site's own PyTorch


def test_from_the_folder_that_was_carried_here(clone, tmp_path):
    """No index is asked, Horovod is not built, and the hub's proxy is available.

    Programs of the course see nothing of it.
    """
    folder = clone / "offline"
    key = horovod_wheel.wheel_key({"torch": "2.13.0+cpu"})
    for part in ("wheels", f"horovod/{key}", "proxy-1"):
        (folder / part).mkdir(parents=True)
    (folder / "made_for.json").write_text(json.dumps({"python": "3.11", "torch": "2.13.0+cpu"}))
    (folder / "horovod" / key / "horovod-0.28.1-any.whl").touch()
    bootstrap.set_up(clone)
    made = calls()
    assert any("torch==" in line for line in made) and not any(
        "torch-backend" in line or "pip wheel" in line for line in made
    )
    plan = setup_plan.Plan(clone, os.environ)
    environ = plan.installer(None).environ
    assert (environ["PIP_NO_INDEX"], environ["PIP_FIND_LINKS"]) == (
        "1",
        str(folder / "wheels"),
    ) and "PIP_NO_INDEX" not in plan.environment()
    assert (clone / ".manyhands" / "proxy-1").is_dir() and plan.pythons() == ("3.11",)


def test_the_sites_pytorch_stays_as_it_is(clone, tmp_path, monkeypatch):
    """What the site has is neither installed nor touched; the rest lies over it.

    It is asked for once.
    """
    monkeypatch.undo()
    site, clone = tmp_path / "site", tmp_path / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", site], check=True)
    [packages] = site.glob("lib/python*/site-packages")
    for name, version in (("torch", "2.13.0"), ("Jinja2", "3.0.0")):
        (packages / f"{name}-{version}.dist-info").mkdir()
        (packages / f"{name}-{version}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
    clone.mkdir()
    for name in ("constraints.txt", "environment.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, clone)
    environ = {"PATH": f"{site / 'bin'}:{os.environ['PATH']}", "MANYHANDS_SITE": "1"}
    assert pythons_module.find_site_python(environ) == str(site / "bin" / "python3")
    plan = setup_plan.Plan(clone, environ)
    subprocess.run(
        [site / "bin" / "python3", "-m", "venv", "--without-pip", plan.prefix], check=True
    )
    plan.show_site(str(site / "bin" / "python3"))
    assert plan.version("torch") == "2.13.0" and {"torch", "jinja2"} <= plan.site_packages()
    names = plan.write_package_list()
    assert "jinja2" not in names and "torch" not in names and "numpy" in names
    plan.stamp = {"site": True}
    plan.save()
    assert (
        setup_plan.Plan(clone, {}).site and not setup_plan.Plan(clone, {"MANYHANDS_SITE": "0"}).site
    )


@pytest.mark.parametrize(("torch", "why"), [("", "has none"), ("2.12.1", "has PyTorch 2.12.1")])
def test_a_site_without_a_pytorch_that_will_do_is_told(pythons, tmp_path, monkeypatch, torch, why):
    pythons("python3", "3.12.1")
    monkeypatch.setattr(pythons_module, "version_of", lambda python, name: torch)
    with pytest.raises(StepFailedError, match="MANYHANDS_SITE=1") as stop:
        pythons_module.find_site_python({})
    assert why in stop.value.why and "2.13" in stop.value.remedy


def test_a_long_step_shows_how_much_its_folder_has_grown(tmp_path):
    """What other programs write on the same disk does not count."""
    (tmp_path / "venv").mkdir()
    write = (
        "import sys, time; open(sys.argv[1], 'wb').write(bytes(int(sys.argv[2]))); time.sleep(3)"
    )
    shown = io.StringIO()
    steps = Steps(1, tmp_path / "log", shown)
    steps.live = True
    steps.begin("packages")
    other = subprocess.Popen([sys.executable, "-c", write, tmp_path / "other", "90000000"])
    steps.call(
        [
            sys.executable,
            "-c",
            "import time; time.sleep(1);" + write,
            tmp_path / "venv" / "file",
            "30000000",
        ],
        into=tmp_path / "venv",
    )
    other.wait()
    sizes = set(re.findall(r"(\d+) MB written", shown.getvalue()))
    assert sizes == {"30"}, shown.getvalue()


def test_what_was_written_is_shown_alone_where_nothing_else_is_known(tmp_path):
    shown = io.StringIO()
    steps = Steps(1, tmp_path / "log", shown)
    steps.begin("packages")
    steps.shown = 0.0  # long ago
    steps._follow(_ended_pipe(b"a line that says nothing\n"), None, [], lambda: "400 MB written")
    assert "[1/1] packages: 400 MB written (" in shown.getvalue(), shown.getvalue()


def _ended_pipe(data):
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    return open(reader, "rb")


def test_stopped_while_it_waits_for_another_set_up(tmp_path):
    stopped = pytest.raises(SystemExit, match="Stopped before the first step")
    with stopped, bootstrap.report_failures(Steps(5, tmp_path / "log")):
        raise KeyboardInterrupt


def test_the_end_of_horovods_build_says_that_it_is_the_last_step():
    assert (
        horovod_wheel.build_detail("[ 42%] Building CXX object x.o")
        == "building, 42 %: about 4 minutes on 2 cores, once"
    )
    assert (
        horovod_wheel.build_detail("[ 98%] Linking CXX shared library y.so")
        == "building, 98 %: last step, about a minute"
    )
    assert horovod_wheel.build_detail("-- Found MPI") is None

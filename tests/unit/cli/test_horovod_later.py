"""`make lab` on a new clone: it opens while Horovod is built. The command is the real one, and pip and the compiler are stand-ins."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pytest
from test_bootstrap import EARLY, clone  # noqa: F401
from test_horovod_wheel import sources

from manyhands import machine
from manyhands.cli import horovod_wheel

ROOT = Path(__file__).resolve().parents[3]
PIP = """
if "pip download" in said or " download " in said:
    shutil.copy(os.environ["ARCHIVE"], sys.argv[sys.argv.index("--dest") + 1])
if " wheel " in said:
    import time
    compiled = sys.argv[-1] + "/compiled.o"
    print("[ 97%] Linking" if os.path.exists(compiled) else "[ 42%] Building", flush=True)
    open(compiled, "w").close()
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.05)
    open(sys.argv[sys.argv.index("--wheel-dir") + 1] + "/horovod-0.28.1-any.whl", "w").close()
"""


@pytest.fixture
def new(clone, tmp_path, monkeypatch):  # noqa: F811
    """A clone with the set-up's own files, on a machine whose build of Horovod ends when the file GO is there."""
    for name in EARLY:
        (clone / "src/manyhands" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src/manyhands" / name, clone / "src/manyhands" / name)
    stand_in = tmp_path / "bin" / "python3.11"
    stand_in.write_text(stand_in.read_text() + PIP)
    archive = tmp_path / f"horovod-{horovod_wheel.VERSION}.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        for name, text in sources().items():
            member = tarfile.TarInfo(f"horovod-{horovod_wheel.VERSION}/{name}")
            member.size = len(text)
            file.addfile(member, io.BytesIO(text.encode()))
    monkeypatch.setenv("MANYHANDS_PYTHON", str(stand_in))
    monkeypatch.setenv("ARCHIVE", str(archive))
    monkeypatch.setenv("GO", str(tmp_path / "go"))
    yield clone
    (tmp_path / "go").touch()
    wait(lambda: not machine.horovod_build(clone))


def start(clone, *words):  # noqa: F811
    return subprocess.Popen([sys.executable, str(clone / "src/manyhands/cli/bootstrap.py"), *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def lab(clone):  # noqa: F811
    """What `make lab` prints until JupyterLab would be there."""
    said, _ = start(clone, "run", "--horovod-later", "manyhands", "lab").communicate(timeout=60)
    return said


def wait(true, seconds=60):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def called(words):
    return sum(words in line for line in Path(os.environ["CALLS"]).read_text().splitlines())


def stamp(clone):  # noqa: F811
    return json.loads((clone / ".venv/manyhands-setup.json").read_text())


def test_the_course_opens_while_horovod_is_built_and_a_test_run_waits_for_it(new):
    for times in (1, 2):
        assert "in the background" in lab(new)
        assert called("-m manyhands lab") == times and called(".whl") == 0 and "horovod" not in stamp(new)
        wait(lambda: machine.horovod_build(new).startswith("building, 42 %"))
    tests = start(new, "run", "pytest")
    assert any("another set-up is building, 42 %" in line for line in tests.stdout)
    Path(os.environ["GO"]).touch()
    assert tests.communicate(timeout=60) and tests.returncode == 0
    wait(lambda: not machine.horovod_build(new))
    assert called("pip wheel") == 1 and called("-m pytest") == 1 and called(".whl") >= 1
    assert stamp(new)["horovod"] and not machine.horovod_progress(new).exists()
    assert lab(new) == "", "there is nothing left to say"


def test_a_killed_build_goes_on_at_the_next_start(new):
    lab(new)
    wait(lambda: machine.horovod_build(new).startswith("building, 42 %"))
    started = [str(new / "src/manyhands/cli/bootstrap.py"), "horovod"]
    [process] = [one for one in psutil.process_iter(["cmdline"]) if (one.info["cmdline"] or [])[1:3] == started]
    for one in (*process.children(recursive=True), process):
        one.send_signal(signal.SIGKILL)
    wait(lambda: not machine.horovod_build(new))
    assert "in the background" in lab(new)
    wait(lambda: machine.horovod_build(new).startswith("building, 97 %"))
    Path(os.environ["GO"]).touch()
    wait(lambda: stamp(new).get("horovod"))
    assert called("pip download") == 1


def test_a_wheel_that_was_built_before_is_installed_while_the_course_opens(new):
    Path(os.environ["GO"]).touch()
    lab(new)
    wait(lambda: not machine.horovod_build(new) and "horovod" in stamp(new))
    shutil.rmtree(new / ".venv")
    Path(os.environ["CALLS"]).write_text("")
    assert "installed in the background, from the wheel that was built here before" in lab(new)
    wait(lambda: not machine.horovod_build(new) and "horovod" in stamp(new))
    assert called("pip wheel") == 0 and called(".whl") == 1

"""`make lab` on a new clone: it opens while Horovod is built.

The command is the real one, and pip and the compiler are stand-ins.
"""

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
from manyhands.checks import progress
from manyhands.cli import horovod_wheel, setup_later

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
if "-m manyhands lab" in said:
    import time
    while os.path.exists(os.environ["OPEN"]):
        time.sleep(0.05)
"""


@pytest.fixture
def new(clone, tmp_path, monkeypatch):
    """A clone with the set-up's own files, whose build of Horovod ends when the file GO exists."""
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
    monkeypatch.setenv("OPEN", str(tmp_path / "open"))
    yield clone
    (tmp_path / "go").touch()
    (tmp_path / "open").unlink(missing_ok=True)
    wait(lambda: not machine.horovod_build(clone))


def start(clone, *words):
    return subprocess.Popen(
        [sys.executable, str(clone / "src/manyhands/cli/bootstrap.py"), *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def lab(clone):
    """What `make lab` prints until JupyterLab would be there."""
    output, _ = start(clone, "run", "--horovod-later", "manyhands", "lab").communicate(timeout=60)
    return output


def wait(true, seconds=60):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def called(words):
    return sum(words in line for line in Path(os.environ["CALLS"]).read_text().splitlines())


def stamp(clone):
    return json.loads((clone / ".venv/manyhands-setup.json").read_text())


def test_the_course_opens_while_horovod_is_built_and_a_test_run_waits_for_it(new):
    for times in (1, 2):
        assert "in the background" in lab(new)
        assert (
            called("-m manyhands lab") == times
            and called(".whl") == 0
            and "horovod" not in stamp(new)
        )
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
    [process] = [
        member
        for member in psutil.process_iter(["cmdline"])
        if (member.info["cmdline"] or [])[1:3] == started
    ]
    for member in (*process.children(recursive=True), process):
        member.send_signal(signal.SIGKILL)
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


def test_nothing_is_compiled_until_the_first_cell_has_run(new):
    """Neither the bytecode nor Horovod."""
    opened, go = Path(os.environ["OPEN"]), Path(os.environ["GO"])
    opened.touch()
    Path(os.environ["CALLS"]).touch()
    jupyter = start(new, "run", "--horovod-later", "manyhands", "lab")
    wait(lambda: called("-m manyhands lab"))
    wait(lambda: machine.horovod_build(new) == setup_later.WAITING)
    assert (
        called("import torch, torch.distributed") == 1
        and called("compileall") == called("pip wheel") == 0
    )
    ran = progress.path_in(new / "work")
    ran.parent.mkdir(parents=True)
    ran.touch()
    wait(lambda: machine.horovod_build(new).startswith("building, 42 %"))
    assert called("compileall") == 1 and stamp(new)["compiled"] and jupyter.poll() is None
    go.touch()
    wait(lambda: stamp(new).get("horovod"))
    opened.unlink()
    jupyter.communicate(timeout=60)
    assert lab(new) == "" and called("compileall") == 1


def test_bytecode_that_is_missing_is_written_in_the_background_or_at_once_where_all_is_wanted(new):
    Path(os.environ["GO"]).touch()
    start(new, "setup").communicate(timeout=60)
    assert called("compileall") == 1 and called("import torch, torch.distributed") == 0
    for command, also in (("run --horovod-later manyhands lab", ""), ("run pytest", "compileall")):
        state = stamp(new)
        state.pop("compiled")  # the process in the background was killed
        (new / ".venv/manyhands-setup.json").write_text(json.dumps(state))
        Path(os.environ["CALLS"]).write_text("")
        start(new, *command.split()).communicate(timeout=60)
        assert not also or called(also) == 1
        wait(lambda: "compiled" in stamp(new))
        assert called("compileall") == 1 and called("--requirement") == called(".whl") == 0


def test_a_template_that_is_no_python_stops_no_compiling_and_what_is_compiled_stays(tmp_path):
    for name, text in (("a.py", "one = 1"), ("template.py", "{{ name }} ="), ("z.py", "two = 2")):
        (tmp_path / name).write_text(text)
    made = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", setup_later.COMPILE, "1", tmp_path], check=True)
        made.append(
            {
                path.name.split(".")[0]: path.stat().st_mtime_ns
                for path in tmp_path.glob("__pycache__/*.pyc")
            }
        )
    assert set(made[0]) == {"a", "z"} and made[1] == made[0]

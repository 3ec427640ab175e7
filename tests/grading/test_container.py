"""The container in bubblewrap's place, as far as no engine is needed.

How is it chosen and started, what does it see, and how does its first process end?
"""

import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import pytest

from manyhands.grading import engine
from manyhands.grading.store import references
from manyhands.isolation import bubblewrap, choose, container, container_init
from sandboxed import forget

NO_BUBBLEWRAP = "bubblewrap is missing: apt-get install bubblewrap"
# a program in the place of docker: what it answers is put into it
DOCKER = """#!{python}
import json, os, socket, sys
if sys.argv[1] == "version":
    sys.exit({version!r})
if sys.argv[1] == "image":
    sys.exit({image!r})
if sys.argv[1] == "run":
    {run}
"""
ANSWERS = """door = socket.socket(socket.AF_UNIX)
    door.connect(sys.argv[-1])
    door.recv(10)
    door.sendall({answer!r})"""
RUNS_HERE = "os.execv({python!r}, [{python!r}, *sys.argv[sys.argv.index('manyhands:cpu') + 1:]])"
GOOD = {
    "course": container_init.course(Path(container_init.__file__).parents[1]),
    "limits": [str(container.TRIAL_BYTES), str(container.TRIAL_TASKS)],
}


def answering(**facts):
    return ANSWERS.format(answer=json.dumps({**GOOD, **facts}).encode())


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty PATH, with nothing remembered of the real one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("MANYHANDS_IMAGE", raising=False)
    forget()
    yield folder
    forget()


def put(path, name="docker", version=0, image=0, run="sys.exit('cannot')"):
    program = path / name
    program.write_text(DOCKER.format(python=sys.executable, version=version, image=image, run=run))
    program.chmod(0o755)
    return str(program)


def test_a_refusal_gives_both_reasons_a_line_each(path):
    assert choose.why_none().splitlines() == [
        NO_BUBBLEWRAP,
        "no container: neither docker nor podman is installed",
    ]


@pytest.mark.parametrize(
    "answers, reason",
    [
        (
            {"version": "Cannot connect to the daemon"},
            "it does not answer (Cannot connect to the daemon)",
        ),
        (
            {"image": "no such\nimage"},
            "it has no image manyhands:cpu (docker/README.md) (no such image)",
        ),
        ({"run": "sys.exit('no space left')"}, "no container was started: no space left"),
        (
            {"run": answering(course="of yesterday")},
            container.ANOTHER.format(image="manyhands:cpu"),
        ),
        ({"run": answering(limits=["max", "100"])}, container.NO_LIMITS),
    ],
)
def test_what_keeps_an_engine_from_being_used_is_said(path, answers, reason):
    put(path, **answers)
    assert choose.why_none() == f"{NO_BUBBLEWRAP}\nno container: docker: {reason}"


def test_a_reference_of_a_container_is_not_one_of_this_machine(path, lab):
    """Nor one of another image."""
    assert choose.image() == ""
    assert (
        len(
            {
                references.key(lab.solution, lab.notebook, 1, image)
                for image in ("", "sha256:one", "sha256:two")
            }
        )
        == 3
    )


def test_the_first_engine_that_works_is_taken(path):
    put(path, version="down")
    podman = put(path, "podman", run=answering())
    assert choose.why_none() is None and choose.contained()
    assert container.engine() == (podman, None)


def test_a_trial_runs_the_first_process_itself(path, tmp_path, monkeypatch):
    """Here it runs beside us, so it finds this course, and not the limits."""
    put(path, run=RUNS_HERE.format(python=sys.executable))
    monkeypatch.setattr(container, "FOLDER", str(tmp_path / "there"))
    assert container.why_none() == f"no container: docker: {container.NO_LIMITS}"


def test_what_the_first_process_stumbles_over_is_said(path, tmp_path, monkeypatch):
    put(path, run=RUNS_HERE.format(python=sys.executable))
    (tmp_path / "there").write_text("in the way")
    monkeypatch.setattr(container, "FOLDER", str(tmp_path / "there"))
    assert (
        "no container was started: Traceback" in container.why_none()
        and "FileExistsError" in container.why_none()
    )


def test_without_a_sandbox_nothing_is_graded_where_one_is_demanded(path, lab):
    with pytest.raises(RuntimeError, match="bubblewrap is missing.*\nno container: neither"):
        engine.grade(lab.submit(lab.handed_in()), lab.solution, seed=1, sandboxed=True)
    assert engine._where(False, choose.why_none()) == "without a sandbox (that changes no points)"
    assert (
        choose.why_none()
        == f"{NO_BUBBLEWRAP}\nno container: neither docker nor podman is installed"
    )


def test_a_container_gets_nothing_but_one_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYHANDS_IMAGE", "other:tag")
    words = container.command("docker", "mh-1", tmp_path, memory_bytes=4096, tasks=50)
    assert (
        words[:2] == ["docker", "run"]
        and words[-1] == f"{tmp_path}/p/door"
        and words[-5:-3] == ["other:tag", "-I"]
    )
    assert {
        "--rm",
        "--read-only",
        "--network=none",
        "--user=1000:1000",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--pull=never",
        "--memory=4096",
        "--memory-swap=4096",
        "--pids-limit=50",
        "--shm-size=1024",
        "--name=mh-1",
    } <= set(words)
    mounts = [word for word in words if word.startswith("--mount=")]
    assert all(f"source={tmp_path}/" in word and word.endswith(",readonly") for word in mounts)
    assert [word for word in mounts if "target=/etc/" not in word] == [
        f"--mount=type=bind,source={tmp_path}/p,target={tmp_path}/p,readonly"
    ]
    assert not [
        word
        for word in words
        if word.startswith(("--volume", "-v", "--env", "-e", "--privileged", "--device"))
    ]


def test_a_container_sees_no_more_of_the_environment_than_a_sandbox():
    ordinary = {
        "API_TOKEN": "x",
        "MATPLOTLIBRC": "/here",
        "MANYHANDS_SEED": "1",
        "PATH": "/here/bin",
    }
    seen = container.environment(ordinary)
    assert set(seen) == set(bubblewrap.environment(ordinary)) - {"MATPLOTLIBRC"}
    assert seen["MANYHANDS_SEED"] == "1" and not any("/here" in value for value in seen.values())


@pytest.fixture
def home():
    """A folder whose name is short: those of sockets are."""
    with tempfile.TemporaryDirectory(prefix="mh-") as folder:
        yield Path(folder)


@pytest.fixture
def started(path, home, tmp_path):
    """Start a program by way of the first process, here and not in a container.

    Gives (the `Container`, the folder where it runs).
    """
    program, made = put(path, run=RUNS_HERE.format(python=sys.executable)), []
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "mine.txt").write_text("mine")
    container.pack(tmp_path / "submission", tmp_path / "submission.tar")

    def start(code, fds=()):
        made.append(container.Container(program, home, memory_bytes=2**30, tasks=100))
        order = {
            "command": [sys.executable, "-c", code, "fds="],
            "environment": {"SEED": "7"},
            "folder": str(tmp_path / "there"),
            "submission": str(tmp_path / "submission.tar"),
            "file_bytes": 1000,
            "processes": 10**6,
        }
        made[0].send_order(order, list(fds), time.monotonic() + 60)
        return made[0], tmp_path / "there"

    yield start
    made[0].stop()


def test_the_kernel_gets_open_files_the_submission_and_its_environment(started):
    reader, writer = os.pipe()
    source = "open('mine.txt').read() + os.environ['SEED'] + str(len(os.environ))"
    box, _ = started(
        f"import os, sys; os.write(int(sys.argv[1][4:]), ({source}).encode())", [writer]
    )
    os.close(writer)
    assert box.process.wait(60) == 0 and box.reason == "died"
    with os.fdopen(reader) as answer:
        assert answer.read() in ("mine71", "mine72")  # Python adds LC_CTYPE


def test_a_file_that_grows_too_large_is_cut(started):
    box, there = started("open('large', 'wb').write(bytes(2000))")
    box.process.wait(60)
    assert (there / "large").stat().st_size == 1000


def test_the_first_process_ends_when_the_line_is_cut(started):
    box, _ = started("import time; time.sleep(5)")
    time.sleep(0.5)
    assert box.process.poll() is None and box.reason is None
    box.line.close()
    assert box.process.wait(4) == 0


def test_only_the_first_who_asks_gets_an_order(started, home):
    started("import time; time.sleep(2)")
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(str(home / "p" / "door"))
    assert [place.stat().st_mode & 0o777 for place in (home, home / "p", home / "p" / "door")] == [
        0o700,
        0o755,
        0o666,
    ]


def test_namespaces_are_refused_to_what_is_started(started):
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
got = [libc.unshare(0x10000000), libc.syscall(435, 0, 0), ctypes.get_errno(), libc.clone(ctypes.c_void_p(0), 0, 0x10000000 | 17, 0)]
os.write(int(sys.argv[1][4:]), str(got).encode())
"""
    reader, writer = os.pipe()
    box, _ = started(code, [writer])
    os.close(writer)
    box.process.wait(60)
    with os.fdopen(reader) as answer:
        assert answer.read() == "[-1, -1, 38, -1]"

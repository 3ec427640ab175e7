"""Submissions that run in a container, because bubblewrap is not available.

What they are worth, what they can do, and that none is left.

The attacks are those of tests/attacks; that each of them is real is tested there.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path[:0] = [
    str(Path(__file__).parents[1] / name) for name in ("attacks", "classroom", "grading")
]

import room  # noqa: E402
import target  # noqa: E402
import test_bombs as bombs  # noqa: E402
import test_reaching_out as reaching_out  # noqa: E402
from engines import call, wait_for  # noqa: E402
from nbformat.v4 import new_code_cell  # noqa: E402
from target import lab, outside  # noqa: E402, F401 (fixtures)

from manyhands.isolation import choose, container  # noqa: E402
from manyhands.isolation.kernel import Kernel  # noqa: E402
from sandboxed import CAN, forget, own_cache  # noqa: E402, F401 (own_cache is a fixture)

pytestmark = pytest.mark.containers

TODAY = (
    "FROM {image}\nUSER root\nRUN rm -r /opt/manyhands/src\nCOPY src /opt/manyhands/src\nUSER "
    "learner\n"
)
IMAGE = f"manyhands:test-{os.getpid()}"


@pytest.fixture(scope="module")
def image(engine, cpu, tmp_path_factory):
    """The image with the course as it is now, whenever it was built."""
    recipe = tmp_path_factory.mktemp("image") / "Dockerfile"
    recipe.write_text(TODAY.format(image=f"localhost/{cpu}" if engine.builder == "podman" else cpu))
    call(engine.builder, "build", *engine.options, "--file", recipe, "--tag", IMAGE, ".")
    yield IMAGE
    engine.docker("image", "rm", "--force", IMAGE)


@pytest.fixture(scope="module", autouse=True)
def no_bubblewrap(image, tmp_path_factory):
    """A bwrap that fails comes first in the PATH, for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "bwrap").write_text("#!/bin/sh\necho forbidden by this test >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        patch.setenv("MANYHANDS_IMAGE", image)
        forget()
        assert choose.why_none() is None and choose.contained()
        yield
    forget()


def of_submissions(engine):
    """The names of all containers in which submissions run, and of what is left of such."""
    return set(
        engine.docker("ps", "--all", "--format", "{{.Names}}", "--filter", "name=^mh-").split()
    )


@pytest.fixture(autouse=True)
def none_left(engine):
    before = of_submissions(engine)
    yield before
    assert of_submissions(engine) == before


@pytest.fixture
def attack(lab, outside, monkeypatch):
    seen = target.watch(monkeypatch)
    return lambda notebook, **options: target.graded(lab, notebook, seen, **options)


@pytest.fixture(scope="module")
def kernel(no_bubblewrap, tmp_path_factory):
    with Kernel(tmp_path_factory.mktemp("submission"), 5, sandboxed=True) as kernel:
        assert not kernel.run(reaching_out.TOOLS).error
        yield kernel


def ask(kernel, code):
    ran = kernel.run(code)
    assert not ran.error, ran.error
    return "".join(output["text"] for output in ran.outputs).strip()


def test_points_are_those_of_the_sandbox(lab, attack):
    got = attack(lab.handed_in(square="return 2 * x"))
    assert got.points == (2, 4) and got.grade.sandbox == "in a sandbox (a container)"
    got = attack(lab.handed_in())
    assert got.points == (4, 4) and got.grade.full and got.grade.notes == []


def test_podman_by_itself(engine, lab, attack, monkeypatch):
    if engine.builder != "podman":
        pytest.skip("Docker has the image")
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    monkeypatch.setattr(container, "engine", lambda: (shutil.which("podman"), None))
    before = psutil.Process().children(recursive=True)
    assert attack(lab.handed_in()).points == (4, 4)
    assert attack(lab.handed_in(total="return len(b'x' * 2**30)"), limits=bombs.SMALL).points == (
        2,
        4,
    )
    assert psutil.Process().children(recursive=True) == before


def test_a_class_is_graded_side_by_side(tmp_path, monkeypatch):
    class_of = room.Room(tmp_path / "course")
    monkeypatch.setenv("MANYHANDS_ROOT", str(class_of.root))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    answers = {
        "ada": {},
        "ben": {"square": "return 1"},
        "cyd": {"square": "import os; os._exit(0)"},
    }
    for student, bodies in answers.items():
        class_of.collected(student, class_of.lab.handed_in(**bodies))
    code, output = class_of.command("grade", "90", "--jobs", "2")
    assert code == 0 and "3 graded" in output, output
    assert [class_of.grade_of(student)["points"] for student in answers] == [4, 2, 0]


def test_where_the_engine_starts_nothing_no_grade_is_written(tmp_path, monkeypatch):
    class_of = room.Room(tmp_path / "course")
    monkeypatch.setenv("MANYHANDS_ROOT", str(class_of.root))
    class_of.collected("alice", class_of.lab.handed_in())
    monkeypatch.setattr(container, "PYTHON", "/not/there")
    code, output = class_of.command("grade", "90")
    assert code == 2 and "no container was started:" in output and "Traceback" not in output, output
    assert not list((class_of.folder / "grades").rglob("0*.json"))


def test_it_is_an_ordinary_user_of_a_machine_of_its_own(kernel, lab):
    (Path(kernel.submission) / "mine.txt").write_text("mine")
    with Kernel(kernel.submission, 5, sandboxed=True) as own:
        assert (
            ask(own, "import os; print(os.listdir(), open('mine.txt').read())")
            == "['mine.txt'] mine"
        )
    names = "socket.gethostname(), socket.gethostbyname(socket.gethostname())"
    assert ask(kernel, f"print(os.getuid(), os.getgid(), {names})") == "1000 1000 sandbox 127.0.0.1"
    rights = (
        "[line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', "
        "'CapPrm', 'CapBnd'))]"
    )
    assert ask(kernel, f"print({rights})") == str(["0" * 16] * 3)
    assert (
        ask(
            kernel,
            "print([name for _, name in socket.if_nameindex()], "
            "socket.socket().connect_ex(('192.0.2.1', 80)) != 0)",
        )
        == "['lo'] True"
    )
    assert (
        ask(
            kernel,
            "server = socket.create_server(('127.0.0.1', 0)); "
            "print(socket.socket().connect_ex(server.getsockname()))",
        )
        == "0"
    )
    assert (
        ask(
            kernel,
            "print(sorted(os.environ.keys() & {'container', 'MANYHANDS_ROOT', 'DOCKER_HOST', "
            "'MANYHANDS_IMAGE'}))",
        )
        == "[]"
    )
    hidden = [
        lab.solution,
        Path(__file__),
        "/course/solutions",
        "/var/run/docker.sock",
        Path(os.environ["XDG_CACHE_HOME"]),
    ]
    assert (
        ask(
            kernel,
            f"print([place for place in {[str(place) for place in hidden]} if "
            "os.path.exists(place)])",
        )
        == "[]"
    )


def test_what_it_can_write_is_memory_of_its_own(kernel):
    ask(kernel, CAN)
    package = "/opt/manyhands/src/manyhands/__init__.py"
    places = [
        "/x",
        "/usr/x",
        "/etc/hosts",
        "/etc/resolv.conf",
        package,
        "/opt/manyhands/.venv/x",
        "/course/x",
        "/sys/x",
        f"{kernel.home.name}/p/x",
    ]
    assert ask(kernel, f"print([place for place in {places} if can(place)])") == "[]"
    assert ask(
        kernel,
        "print([can(place) for place in ('mine', '/tmp/x', '/dev/shm/x', "
        "os.path.expanduser('~/x'))])",
    ) == str([True] * 4)
    assert (
        ask(
            kernel,
            "print({os.statvfs(place).f_blocks * os.statvfs(place).f_frsize for place in ('.', "
            "'/tmp', '/dev/shm')})",
        )
        == f"{{{2**30}}}"
    )


def test_its_first_process_is_out_of_reach(kernel):
    code = """
import signal
got = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGUSR1):
    os.kill(1, number)
for look in (os.listdir, os.readlink, lambda place: open(place, "rb+")):
    for place in ("fd", "task/1/fd", "root", "cwd", "mem", "environ", "maps"):
        try:
            got.append(look(f"/proc/1/{place}"))
        except OSError:
            pass
got += [libc.ptrace(16, 1, 0, 0), libc.syscall(438, libc.syscall(434, 1, 0), 3, 0)]
print(got)
"""
    assert ask(kernel, code) == "[-1, -1]"
    assert kernel.watcher.reason is None


@pytest.mark.parametrize("name", reaching_out.ATTEMPTS)
def test_what_is_outside_cannot_be_reached(kernel, lab, outside, name):
    assert reaching_out.attempt(kernel, name, lab, outside) is False


@pytest.mark.parametrize("name", bombs.BOMBS)
def test_bombs_cost_their_own_points(lab, attack, name):
    body, words = bombs.BOMBS[name]
    notebook = lab.handed_in(total=body.strip())
    notebook.cells.insert(1, new_code_cell(bombs.TOOLS))
    got = attack(
        notebook,
        limits={"time": bombs.SHORT, "processes": bombs.FORKS}.get(name.split(":")[0], bombs.SMALL),
    )
    assert got.points == (2, 4), got.notes
    output = got.notes + str([criterion.detail for criterion in got.grade.criteria])
    assert any(word in output for word in words.split("|")), output


@pytest.mark.parametrize("name", bombs.STAYS)
def test_nothing_stays_behind(lab, attack, name):
    notebook = lab.handed_in()
    notebook.cells.insert(1, new_code_cell(bombs.STAYS[name]))
    assert attack(notebook).points == (4, 4)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_container_goes_with_its_grader(engine, lab, none_left, how):
    """The submission does what it can to stay: it kills what it can, and is deaf to signals."""
    stay = (
        "import os, signal, time\n    for number in set(signal.valid_signals()) - {9, 19}: "
        "signal.signal(number, signal.SIG_IGN)\n    "
    )
    lab.submit(lab.handed_in(square=stay + "os.fork(); os.kill(1, 9); time.sleep(731)"))
    grader = subprocess.Popen(
        [sys.executable, "-m", "manyhands", "check", "90"],
        env={**os.environ, "MANYHANDS_ROOT": str(lab.folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # a shell may have made us ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    (name,) = wait_for(
        lambda: (
            of_submissions(engine) - none_left
            if two_kernels(engine, of_submissions(engine) - none_left)
            else set()
        )
    )
    grader.send_signal(how)
    _out, output = grader.communicate(timeout=60)
    if how == signal.SIGKILL:
        wait_for(lambda: name not in of_submissions(engine), 30)
    else:
        assert grader.returncode == (130 if how == signal.SIGINT else 143), output


def two_kernels(engine, names):
    """Whether the submission in this container has forked."""
    lines = [
        subprocess.run(["docker", "top", name], capture_output=True, text=True).stdout
        for name in names
    ]
    return any(line.count("-f /") == 2 for line in lines)


KERNEL = """
import sys
from manyhands.isolation.kernel import Kernel
with Kernel(sys.argv[1], 5, sandboxed=True) as kernel:
    print("up", flush=True)
    kernel.run("import time; time.sleep(100)")
"""


def test_a_grader_that_is_killed_at_any_moment_of_the_start_leaves_no_container(
    engine, none_left, tmp_path
):
    def start():
        return subprocess.Popen(
            [sys.executable, "-c", KERNEL, str(tmp_path)],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    whole = start()
    began = time.monotonic()
    assert whole.stdout.readline() == b"up\n"
    whole_s = time.monotonic() - began
    whole.kill()
    for tenths in range(1, 11):
        grader = start()
        time.sleep(whole_s * tenths / 10)
        grader.kill()
        grader.wait()
    time.sleep(whole_s)
    wait_for(lambda: of_submissions(engine) == none_left, 60)

"""A submission's kernel in a container of the course's image, where bubblewrap does not work.

It is closed as `bubblewrap` is. Nothing of the host is in it but one folder, read only. The
kernel's sockets are opened outside and handed in; the connection over which that happens is then
what keeps the container: it ends when this process does, however that is (see `container_init`,
which runs inside).
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.isolation import bubblewrap, container_init, process_limits, refused_calls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manyhands.isolation.container_init import Facts, Order

ENGINES = ("docker", "podman")
PYTHON = "/opt/manyhands/.venv/bin/python"
# a place of its own would have the mode of the image's folder there, with some engines
HOME = "/tmp/learner"
FOLDER = f"{HOME}/submission"
PRIVATE = "p"  # short: the names of sockets are
ANSWER_S, START_S, END_S = 20, 60, 20
TRIAL_BYTES, TRIAL_TASKS = 2**28, 100
REASONS = ("memory", "processes", "died")
ANOTHER = (
    "its image {image} contains a different version of the course: build it again "
    "(docker/README.md)"
)
NO_CONTAINER = "no container was started: {said}"
NO_LIMITS = "it does not enforce the limits of memory and processes that it is given"


class NotStartedError(RuntimeError):
    """The engine did not start a container; the message is what it said."""


def image() -> str:
    """The name of the image that containers are made from, which the environment may set."""
    return os.environ.get("MANYHANDS_IMAGE") or "manyhands:cpu"


@functools.cache
def engine() -> tuple[str, None] | tuple[None, str]:
    """(the program that runs containers here, None), or (None, why there is none)."""
    problems = []
    for program in filter(None, map(shutil.which, ENGINES)):
        problem = _lack(program)
        if problem is None:
            return program, None
        problems.append(f"{Path(program).name}: {problem}")
    return None, "no container: " + (
        "; ".join(problems) or "neither docker nor podman is installed"
    )


@functools.cache
def identity() -> str:
    """Of the image, as the engine names it; "" where there is no engine.

    A reference made in it is another one than one made here.
    """
    program, _ = engine()
    return (
        program
        and subprocess.run(
            [program, "image", "inspect", "--format", "{{.Id}}", image()],
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=ANSWER_S,
        ).stdout.strip()
    ) or ""


def why_none() -> str | None:
    """Why there are no containers for submissions here, in a line, or None where there are."""
    return engine()[1]


def _lack(program: str) -> str | None:
    """What keeps submissions from being run by this engine: it is asked, and tried."""
    for words, lack in (
        (["version"], "it does not answer"),
        (["image", "inspect", image()], f"it has no image {image()} (docker/README.md)"),
    ):
        try:
            done = subprocess.run(
                [program, *words],
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=ANSWER_S,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"{lack} ({problem})"
        if done.returncode:
            return f"{lack} ({_in_a_line(done.stderr)})"
    with tempfile.TemporaryDirectory(prefix="mh-") as folder:
        try:
            facts = _try(program, folder)
        except (NotStartedError, OSError) as problem:
            return str(problem)
    if facts["course"] != container_init.course(Path(container_init.__file__).parents[1]):
        return ANOTHER.format(image=image())
    return None if facts["limits"] == [str(TRIAL_BYTES), str(TRIAL_TASKS)] else NO_LIMITS


def _try(program: str, folder: str | Path) -> Facts:
    """What a container says of itself. Raises NotStartedError, OSError."""
    trial = Container(program, folder, memory_bytes=TRIAL_BYTES, tasks=TRIAL_TASKS)
    try:
        return trial.send_order({"folder": FOLDER}, [], time.monotonic() + START_S)
    finally:
        trial.stop()


def command(program: str, name: str, folder: Path, *, memory_bytes: int, tasks: int) -> list[str]:
    """The command that starts a container.

    It sees the folder `p` of `folder`, under the same path; what is written inside is memory.
    """
    options = {
        "name": name,
        "pull": "never",
        "network": "none",
        "user": "1000:1000",
        "cap-drop": "ALL",
        "security-opt": "no-new-privileges",
        "memory": memory_bytes,
        "memory-swap": memory_bytes,
        "pids-limit": tasks,
        "hostname": "sandbox",
        "workdir": "/",
        "shm-size": memory_bytes // 4,
        "tmpfs": f"/tmp:size={memory_bytes // 4},mode=1777,exec",
        "entrypoint": PYTHON,
    }
    arguments = [
        program,
        "run",
        "--rm",
        "--read-only",
        *(f"--{option}={value}" for option, value in options.items()),
    ]
    shown: dict[Path, Path | str] = {
        folder / PRIVATE: folder / PRIVATE,
        **{folder / "etc" / name: f"/etc/{name}" for name in (*bubblewrap.FILES, "resolv.conf")},
    }
    arguments += [
        f"--mount=type=bind,source={there},target={inside},readonly"
        for there, inside in shown.items()
    ]
    return [
        *arguments,
        image(),
        "-I",
        "-c",
        Path(container_init.__file__).read_text(),
        str(folder / PRIVATE / "door"),
    ]


def environment(ordinary: Mapping[str, str]) -> dict[str, str]:
    """What a kernel in a container sees of its ordinary environment.

    That is what it sees in a sandbox, with the image's folders.
    """
    shown = {
        name: value
        for name, value in bubblewrap.environment(ordinary).items()
        if name != "MATPLOTLIBRC"
    }
    return {**shown, "HOME": HOME, "PATH": f"{Path(PYTHON).parent}:/usr/local/bin:/usr/bin:/bin"}


class Container:
    """A container that waits for its order (`send_order`).

    It ends by `stop` or with this process; `reason` is why it has ended before.

    `folder` is the caller's, closed to others; `p` in it is what the container sees.
    """

    def __init__(self, program: str, folder: str | Path, *, memory_bytes: int, tasks: int) -> None:
        self.program, self.private, self.name = (
            program,
            Path(folder) / PRIVATE,
            f"mh-{secrets.token_hex(8)}",
        )
        self.line: socket.socket | None = None
        self._reason: str | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the container
        for place in (self.private, Path(folder) / "etc"):
            place.mkdir(exist_ok=True)
        for name, text in {**bubblewrap.FILES, "resolv.conf": ""}.items():
            (Path(folder) / "etc" / name).write_text(text)
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(self.private / "door"))
        self.door.listen(1)
        for place in (self.private, *self.private.iterdir(), *(Path(folder) / "etc").iterdir()):
            # for the user inside; nobody else gets through `folder`
            place.chmod(0o755 if place.is_dir() else 0o666 if place.is_socket() else 0o644)
        words = command(program, self.name, Path(folder), memory_bytes=memory_bytes, tasks=tasks)
        with process_limits.no_own_limit():
            self.process = subprocess.Popen(
                words,
                start_new_session=True,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
            )

    def send_order(self, order: Order, fds: Sequence[int], until: float) -> Facts:
        """Give the order and open files to the first process inside, and return its answer.

        They are given as soon as it asks, to nobody else, and once. Raises NotStartedError.
        """
        self.door.settimeout(0.2)
        while not self.line:
            with suppress(TimeoutError):
                self.line, _ = self.door.accept()
            if not self.line and (self.process.poll() is not None or time.monotonic() > until):
                raise NotStartedError(self.failure())
        self.door.close()
        self.line.settimeout(max(1, until - time.monotonic()))
        try:
            message = json.dumps({**order, "filters": _filters()}).encode()
            socket.send_fds(self.line, [message], fds)
            answer = json.loads(self.line.recv(2**16))
        except (OSError, ValueError):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S)
            raise NotStartedError(self.failure()) from None
        self.line.setblocking(False)
        return answer

    @property
    def reason(self) -> str | None:
        """One of REASONS once the container has ended, else None."""
        if self.line and self._reason is None:
            with suppress(BlockingIOError):
                message = self.line.recv(20).decode()
                self._reason = message if message in REASONS else self._why_silent()
        return self._reason

    def _why_silent(self) -> str:
        """The first process was itself killed; what does that inside of a limit is the limit."""
        with suppress(subprocess.TimeoutExpired):
            return "memory" if self.process.wait(END_S) == 137 else "died"
        return "died"

    def failure(self) -> str:
        """That there is no container, and what the engine says to that."""
        self._errors.seek(0)
        return NO_CONTAINER.format(
            said=_in_a_line(self._errors.read().decode(errors="replace")) or "it took too long"
        )

    def stop(self) -> None:
        """End it, and wait until it is gone; by force if need be."""
        self.door.close()
        if self.line:
            self.line.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        if self.process.returncode != 0:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [self.program, "rm", "--force", self.name],
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    timeout=3 * END_S,
                )
            self.process.kill()
            self.process.wait()
        self._errors.close()


def _filters() -> dict[str, str]:
    """The filters of system calls, of which the first process inside takes that of its machine."""
    return {machine: refused_calls.filter_of(machine).hex() for machine in refused_calls.CALLS}


def pack(folder: str | Path, target: str | Path) -> None:
    """The submission as one file: inside, it belongs to the user there, whoever owns it here."""
    with tarfile.open(target, "w") as archive:
        archive.add(folder, arcname=".")


def _in_a_line(text: str) -> str:
    return " ".join(text.split())[-300:]

"""The sandbox that a submission runs in where bubblewrap works (`choose` says where).

Inside there is no network but a loopback of its own, no process but its own, and nothing to be seen
but the environment (read only) and a copy of the submission, in memory.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.isolation import refused_calls
from manyhands.isolation.kernel_environment import FIXED
from manyhands.isolation.kernel_limits import FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HOME = "/home/learner"
FOLDER = f"{HOME}/submission"
NAMESPACES = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
]
COPY_IN = (
    f'ulimit -c 0 && ulimit -f {FILE_BYTES // 512} && cp -r /submission/. "$HOME/submission" && '
    'cd "$HOME/submission" && exec "$@"'
)
SHOWN = {
    "MATPLOTLIBRC",
    "MANYHANDS_SEED",
    "MANYHANDS_RECORD",
    "MANYHANDS_PATIENCE_S",
    "OPENBLAS_CORETYPE",
}
FROM_ETC = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "fonts",
    "ssl/openssl.cnf",
    "ssl/certs",
    "mime.types",
]
FILES = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nlearner:x:1000:1000:learner:{HOME}:/bin/sh\n",
    "group": "root:x:0:\nlearner:x:1000:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "host.conf": "multi on\n",
}


@functools.cache
def namespaces() -> tuple[str, ...] | str:
    """The options for the namespaces that bubblewrap can make here.

    Or a text that says why there is no sandbox.
    """
    program = shutil.which("bwrap")
    if not program:
        return "bubblewrap is missing: apt-get install bubblewrap"
    problem = ""
    for options in ([*NAMESPACES, "--disable-userns"], NAMESPACES, NAMESPACES[1:]):
        with refused_calls_file() as calls:
            trial = [program, *frame_options(options, calls), "--", "/bin/sh", "-c", "exit 0"]
            done = subprocess.run(
                trial, capture_output=True, text=True, stdin=subprocess.DEVNULL, pass_fds=calls
            )
        if done.returncode == 0:
            return tuple(options)
        problem = problem or done.stderr.strip()
    return f"bubblewrap does not work here: {problem}"


@contextmanager
def refused_calls_file() -> Iterator[list[int]]:
    """The descriptors that bubblewrap is to inherit.

    There is one, of a filter of system calls, or none on a machine whose calls are not known.
    """
    with tempfile.TemporaryFile() as file:
        machine = os.uname().machine
        known = machine in refused_calls.CALLS
        file.write(refused_calls.filter_of(machine) if known else b"")
        file.seek(0)
        yield [file.fileno()] if known else []


def frame_options(options: Iterable[str], calls: Iterable[int]) -> list[str]:
    """bubblewrap's options for what every sandbox has, with the filters of the files `calls`."""
    arguments = [
        *options,
        *(word for number in calls for word in ("--seccomp", str(number))),
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--hostname",
        "sandbox",
    ]
    return [*arguments, *system_folders(), "--proc", "/proc", "--dev", "/dev"]


def system_folders() -> list[str]:
    """bubblewrap's options that show the machine's programs and libraries, read only."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        place = Path("/") / name
        if place.is_symlink():
            arguments += ["--symlink", f"usr/{name}", str(place)]
        elif place.is_dir():
            arguments += ["--ro-bind", str(place), str(place)]
    return arguments


def command(
    inner: Iterable[str],
    *,
    submission: str | Path,
    private: str | Path,
    memory_bytes: int,
    calls: Iterable[int],
) -> list[str]:
    """The command that runs `inner` in the sandbox.

    It inherits `calls` (see `refused_calls_file`); what it is to see of the environment is passed
    on as it is.

    `submission` is the folder to be copied in; `private` holds the kernel's connection file,
    visible inside under the same path. Nothing of the host can be written: what is written inside
    is memory, a quarter of `memory_bytes` in each place.
    """
    etc = Path(private).parent / "etc"
    etc.mkdir(exist_ok=True)
    arguments = [shutil.which("bwrap") or "bwrap", *frame_options(namespaces(), calls)]
    for name, text in FILES.items():
        (etc / name).write_text(text)
        arguments += ["--ro-bind", str(etc / name), f"/etc/{name}"]
    for name in FROM_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for place in ("/tmp", "/dev/shm", HOME):
        arguments += ["--size", str(memory_bytes // 4), "--tmpfs", place]
    for place in read_only_folders():
        arguments += ["--ro-bind", place, place]
    for device in _gpu_devices():
        arguments += ["--dev-bind", device, device]
    arguments += [
        "--ro-bind",
        str(submission),
        "/submission",
        "--dir",
        FOLDER,
        "--ro-bind",
        str(private),
        str(private),
    ]
    # for a grader that is root, /proc/sys would otherwise be the host's to write
    return [
        *arguments,
        "--remount-ro",
        "/proc",
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--",
        "/bin/sh",
        "-c",
        COPY_IN,
        "sh",
        *inner,
    ]


def environment(ordinary: Mapping[str, str]) -> dict[str, str]:
    """What a kernel in the sandbox sees of its ordinary environment.

    Nothing of it is personal, and its folders exist inside.
    """
    shown = {name: value for name, value in ordinary.items() if name in FIXED or name in SHOWN}
    search = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    folders = {
        "IPYTHONDIR": "/tmp/ipython",
        "JUPYTER_RUNTIME_DIR": "/tmp/jupyter",
        "TMPDIR": "/tmp",
    }
    return {**shown, **folders, "PATH": search, "HOME": HOME, "LANG": "C.UTF-8"}


def read_only_folders() -> list[str]:
    """The folders of the Python environment and of this package.

    These are the environment's prefixes, a site's packages that it shows (docs/SETUP.md), and the
    package without what is next to it in a clone.
    """
    package = Path(__file__).resolve().parents[1]
    wanted = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.executable).resolve().parents[1],
        package,
    }
    shown = {
        Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages")
    }
    wanted |= {place for place in shown if place.is_dir() and not wanted & {place, *place.parents}}
    return sorted(
        str(place)
        for place in wanted
        if place != Path("/usr") and Path("/usr") not in place.parents
    )


def _gpu_devices() -> list[str]:
    return sorted(str(device) for device in Path("/dev").glob("nvidia*"))

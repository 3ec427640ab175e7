"""Small programs around a launch: one guards all its processes, one stands around each rank.

    python process_guard.py guard [FOLDER]    started by the kernel; starts the launchers and ends when they have ended
    python process_guard.py rank FOLDER CMD   started by the launcher in place of CMD; runs CMD, tells the kernel
    python process_guard.py mounts            ends with 0 where the guard's read-only mount is possible here

The guard adopts every process that loses its parent, so nothing that a launch has started can get
away from it: when the launch ends, or the kernel goes, it kills what is left; in the latter case it
also removes the launch's FOLDER and the copy of the script. Run as a file, not as a module, so that
it starts in milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

TYPE_CHECKING = False  # not from `typing`, because this program starts in milliseconds
if TYPE_CHECKING:
    from typing import Any, NoReturn

    import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# the variable that names a script's copy, and a folder in it
COPY, ORIGINALS = "MANYHANDS_COPY", ".originals"
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2
AT_FDCWD, AT_RECURSIVE, MOUNT_SETATTR, MOUNT_ATTR_RDONLY = -100, 0x8000, 442, 1
PARENT = os.getppid()  # as this program begins


def prctl(option: int, value: int) -> None:
    """A wish to the Linux kernel about this process; nothing elsewhere."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# -- the originals of a script's copy --------------------------------------------------------------


def mount_originals() -> None:
    """Show all files of this machine, read-only, in the folder that the script's copy has for it.

    They are seen by this process and by what it starts. Raises OSError where the system does not
    allow that.
    """
    place = os.path.join(os.environ.get(COPY, "/dev/null"), ORIGINALS)
    if not os.path.isdir(place):
        return
    try:
        _call("unshare", CLONE_NEWNS)
    except PermissionError:
        # an ordinary user may do it in a user namespace, where the user keeps its number
        user, group = os.geteuid(), os.getegid()
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)  # it is seen by no other process
    _call("mount", b"/", os.fsencode(place), None, MS_BIND | MS_REC, None)
    read_only = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY)
    _call(
        "syscall",
        MOUNT_SETATTR,
        AT_FDCWD,
        os.fsencode(place),
        AT_RECURSIVE,
        read_only,
        ctypes.sizeof(read_only),
    )


def _call(name: str, *args: Any) -> None:
    """A function of the C library that says by its result whether it has worked."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None or function(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


# -- the guard -------------------------------------------------------------------------------------


def guard() -> int:
    """Start the commands that come as one line on stdin.

    All that they have started is killed when they end, or when stdin ends.
    """
    import psutil  # noqa: F401  # now: the signal below must not find it half imported

    mount_originals()
    signal.signal(signal.SIGTERM, lambda *_: _end_all(143))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    commands = json.loads(sys.stdin.readline() or "[]")
    if os.getppid() != PARENT:
        return 143  # the kernel went before it could be tied to us
    launchers = [
        subprocess.Popen(
            c["argv"], env=c["env"], stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent
        )
        for c in commands
    ]
    threading.Thread(target=_end_all_at_eof, daemon=True).start()
    codes = _wait_for({launcher.pid for launcher in launchers})
    kill_descendants()
    return next((code if code > 0 else 128 - code for code in codes if code), 0)


def _wait_for(pids: set[int]) -> list[int]:
    """The exit codes of our children `pids`, when all have ended.

    Adopted processes that end are not left as zombies.
    """
    codes = []
    while pids:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break  # _end_all, in the other thread, has taken the last of them
        if pid in pids:
            pids.discard(pid)
            codes.append(os.waitstatus_to_exitcode(status))
    return codes


def _end_all_at_eof() -> NoReturn:
    sys.stdin.read()
    _end_all(143)


def _orphaned_copy() -> list[str]:
    """The folder of the script's copy, if the process that made it has gone.

    The read-only mount in it is taken away first.
    """
    copy = os.environ.get(COPY)
    if not copy or os.getppid() == PARENT:
        return []
    place = os.path.join(copy, ORIGINALS)
    with contextlib.suppress(OSError):  # there may be none
        _call("umount2", os.fsencode(place), MNT_DETACH)
    return [] if os.path.isdir(place) and os.listdir(place) else [copy]


def _end_all(code: int) -> NoReturn:
    kill_descendants()
    for folder in [*sys.argv[2:], *_orphaned_copy()]:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def kill_descendants(timeout_s: float = 5) -> None:
    """Send SIGKILL to every process below this one, until none is left.

    None of those that we adopted remains a zombie either.

    A process whose parent dies just while we look has no parent for a moment, so look three
    times.
    """
    import psutil

    deadline, times_clean = time.monotonic() + timeout_s, 0
    while times_clean < 3 and time.monotonic() < deadline:
        living = [p for p in psutil.Process().children(recursive=True) if _alive(p)]
        times_clean = 0 if living else times_clean + 1
        for process in living:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.02)
    _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # none is left


def _alive(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


# -- around each rank ------------------------------------------------------------------------------


def rank(folder: str, command: list[str]) -> int:
    """Run the learner's script with its output going to the kernel.

    Returns its exit code, and reports it.
    """
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    number = int(os.environ[job["rank_variable"]])
    control = _connect(folder, {"channel": "control", "rank": number})
    output = _connect(folder, {"channel": "output", "rank": number})
    if job["gpus"]:
        os.environ["CUDA_VISIBLE_DEVICES"] = job["gpus"][number // job["ranks_per_node"]]
    _no_core_file()
    # close_fds=False: MPI's process manager hands its connection down as an open file
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output.fileno(),
        stderr=output.fileno(),
        close_fds=False,
        preexec_fn=_die_with_parent,
    )
    output.close()
    for caught in (signal.SIGTERM, signal.SIGINT):
        signal.signal(caught, lambda caught, _: child.send_signal(caught))
    aborted = threading.Event()
    threading.Thread(target=_obey, args=(control, child, aborted), daemon=True).start()
    code = child.wait()
    with contextlib.suppress(OSError):  # the kernel has gone
        control.sendall(json.dumps({"exit": code}).encode() + b"\n")
    if aborted.is_set():
        # until the guard kills us: a launcher that saw us end would kill ranks that are still
        # writing
        time.sleep(60)
    return code


def _connect(folder: str, hello: dict[str, Any]) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(os.path.join(folder, "socket"))
    connection.sendall(json.dumps(hello).encode() + b"\n")
    return connection


def _no_core_file() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _obey(control: socket.socket, child: subprocess.Popen[bytes], aborted: threading.Event) -> None:
    """`a` from the kernel: abort the script, whose faulthandler then writes where it stood.

    The kernel gone: kill it.
    """
    try:
        while control.recv(1) == b"a":
            aborted.set()
            child.send_signal(signal.SIGABRT)
    except OSError:
        pass
    child.kill()


def _end_like(code: int) -> NoReturn:
    """End as the script has ended, so that the launcher sees what it would have seen without us."""
    if code < 0:
        (
            signal.signal(-code, signal.SIG_DFL)
            if -code
            not in (
                signal.SIGKILL,
                signal.SIGSTOP,
            )
            else None
        )
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "mounts":
        try:
            mount_originals()
        except OSError:
            os._exit(1)
        os._exit(0)
    if sys.argv[1] == "guard":
        os._exit(guard())
    _end_like(rank(sys.argv[2], sys.argv[3:]))

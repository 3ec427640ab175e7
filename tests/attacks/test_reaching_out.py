"""Code that reads or touches what lies outside its sandbox.

Each attempt works where there is no sandbox, and not in it.
"""

import ctypes
import json
import mmap
import os

import pytest
import target

from manyhands.isolation import bubblewrap
from manyhands.isolation.kernel import Kernel

TOOLS = """
import ctypes, json, os, pathlib, signal, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def others():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
def read(place, start=0, length=-1):
    try:
        with open(place, "rb") as file:
            file.seek(start)
            return file.read(length)
    except (OSError, ValueError, OverflowError):
        return b""
def connects(there, address):
    there.settimeout(2)
    with there:
        return there.connect_ex(address) == 0 and there.send(at["secret"]) > 0
"""
WHERE_NOTHING_HOLDS_IT, AS_ROOT, NOWHERE = (
    "any user",
    "root",
    "no twin: it would change the machine",
)
# name -> (who can do it without a sandbox, code that sets `answer` to whether it worked)
ATTEMPTS = {
    "read the solution": (WHERE_NOTHING_HOLDS_IT, "answer = b'def square' in read(at['solution'])"),
    "read another's submission": (
        WHERE_NOTHING_HOLDS_IT,
        "answer = read(at['other']) == at['secret']",
    ),
    "read the kept results of the solution": (
        WHERE_NOTHING_HOLDS_IT,
        "answer = any(read(path) for path in pathlib.Path(at['cache']).glob('*'))",
    ),
    "read files by way of other processes in /proc": (
        WHERE_NOTHING_HOLDS_IT,
        """
answer = any(read(f"/proc/{pid}/root{at['other']}") == at["secret"] for pid in others())""",
    ),
    "read files through descriptors that were left open": (
        WHERE_NOTHING_HOLDS_IT,
        """
answer = any(read(f"/proc/{pid}/fd/{name}") == at["secret"] for pid in [at["grader"], 1] if os.access(f"/proc/{pid}/fd", os.R_OK)
             for name in os.listdir(f"/proc/{pid}/fd") if os.path.isfile(f"/proc/{pid}/fd/{name}"))""",
    ),
    "read the environment of other processes": (
        WHERE_NOTHING_HOLDS_IT,
        """
answer = any(at["variable"] in read(f"/proc/{pid}/environ") for pid in others())""",
    ),
    "read the memory of other processes": (
        AS_ROOT,
        """
answer = any(read(f"/proc/{pid}/mem", at["address"], len(at["secret"])) == at["secret"] for pid in others())""",
    ),
    "write the gradebook": (
        WHERE_NOTHING_HOLDS_IT,
        "answer = pathlib.Path(at['gradebook']).write_text('mine') > 0",
    ),
    "write the journal of grades": (
        WHERE_NOTHING_HOLDS_IT,
        """
with open(at["journal"], "a") as file:
    answer = file.write("mine") > 0""",
    ),
    "put a link where the gradebook is": (
        WHERE_NOTHING_HOLDS_IT,
        """
os.remove(at["gradebook"])
os.symlink("/tmp/mine", at["gradebook"])
answer = True""",
    ),
    "write where the grader keeps the kernel's sockets": (
        WHERE_NOTHING_HOLDS_IT,
        """
import ipykernel.connect
answer = pathlib.Path(ipykernel.connect.get_connection_file()).with_name("made").write_text("x") == 1""",
    ),
    "kill a process": (WHERE_NOTHING_HOLDS_IT, "os.kill(at['pid'], signal.SIGKILL); answer = True"),
    "trace a process": (
        AS_ROOT,
        """
answer = libc.ptrace(16, at["pid"], 0, 0) == 0
if answer:
    os.waitpid(at["pid"], 0x40000000)
    libc.ptrace(17, at["pid"], 0, 0)""",
    ),
    "reach a port on the host's loopback": (
        WHERE_NOTHING_HOLDS_IT,
        "answer = connects(socket.socket(), ('127.0.0.1', at['port']))",
    ),
    "reach an abstract socket of the host": (
        WHERE_NOTHING_HOLDS_IT,
        """
answer = connects(socket.socket(socket.AF_UNIX), "\\0" + at["abstract"])""",
    ),
    "make namespaces in which it is root": (
        WHERE_NOTHING_HOLDS_IT,
        """
answer = subprocess.run([sys.executable, "-c", "import os, ctypes; os._exit(ctypes.CDLL(None).unshare(0x10020000) != 0)"]).returncode == 0""",
    ),
    "use up the watches of files, of which the host has a number for each user": (
        WHERE_NOTHING_HOLDS_IT,
        "answer = libc.inotify_init1(0) >= 0",
    ),
    "move a number that the host has for all its users: contexts of asynchronous I/O": (
        WHERE_NOTHING_HOLDS_IT,
        """
context = ctypes.c_ulong(0)
answer = libc.syscall({"x86_64": 206}.get(os.uname().machine, 0), 1, ctypes.byref(context)) == 0""",
    ),
    "leave a number at a file of the environment, which the next submission reads": (
        WHERE_NOTHING_HOLDS_IT,
        """
import fcntl
with open(json.__file__, "rb") as file:
    fcntl.fcntl(file, 1036, (3).to_bytes(8, "little"))
    answer = fcntl.fcntl(file, 1035, bytes(8))[0] == 3
    fcntl.fcntl(file, 1036, bytes(8))""",
    ),
    "leave a key in the kernel": (
        WHERE_NOTHING_HOLDS_IT,
        """
answer = libc.syscall({"x86_64": 248}.get(os.uname().machine, 217), b"user", b"left", b"1", 1, -4) > 0""",
    ),
    "hold up who writes a file of the host, by a lease": (
        AS_ROOT,
        """
import fcntl
with open(os.path.realpath("/usr/bin/env")) as file:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
answer = True""",
    ),
    "write a file of two gigabytes": (
        WHERE_NOTHING_HOLDS_IT,
        """
with open("large", "wb") as file:
    file.truncate(2**31)
answer = os.path.getsize("large") == 2**31
os.remove("large")""",
    ),
    "fill the memory below /dev": (
        NOWHERE,
        "answer = pathlib.Path('/dev/made').write_text('x') == 1",
    ),
    "change the kernel's settings": (
        NOWHERE,
        "answer = os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY) > 0",
    ),
    "change the settings of the machine's memory": (
        NOWHERE,
        "answer = os.open('/proc/sys/vm/overcommit_memory', os.O_WRONLY) > 0",
    ),
    "reach the kernel's emergency key": (
        NOWHERE,
        "answer = os.open('/proc/sysrq-trigger', os.O_WRONLY) > 0",
    ),
    "make a device": (
        NOWHERE,
        "os.mknod('/tmp/made', 0o600 | 0o060000, os.makedev(8, 0)); answer = True",
    ),
    "mount something": (NOWHERE, "answer = libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0"),
    "go into the first process's namespaces": (
        NOWHERE,
        "answer = libc.setns(os.open('/proc/1/ns/mnt', os.O_RDONLY), 0) == 0",
    ),
    "take another root": (NOWHERE, "os.chroot('/tmp'); answer = True"),
    "open a file by its number, past all folders": (
        NOWHERE,
        "answer = libc.open_by_handle_at(3, (8).to_bytes(4, 'little') + bytes(80), 0) >= 0",
    ),
    "type into the terminal of who grades": (
        NOWHERE,
        """
import fcntl, termios
answer = fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), termios.TIOCSTI, b"x") == 0""",
    ),
    "be spared when memory is short": (
        NOWHERE,
        "answer = pathlib.Path('/proc/self/oom_score_adj').write_text('-1000') > 0",
    ),
    "set the clock": (NOWHERE, "import time; time.clock_settime(0, time.time()); answer = True"),
    "go before all other processes": (
        NOWHERE,
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)); answer = True",
    ),
    "read the kernel's log": (
        NOWHERE,
        "answer = libc.klogctl(3, ctypes.create_string_buffer(4096), 4096) > 0",
    ),
    "load a program into the kernel": (
        NOWHERE,
        (
            "answer = libc.syscall(321, 0, bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1]) + "
            "bytes(100), 72) >= 0"
        ),
    ),
    "write to the environment that all share": (
        NOWHERE,
        """
answer = pathlib.Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "made.pth").write_text("") == 0""",
    ),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """{sandboxed: a warm kernel}.

    There is one in the sandbox, and one outside, where each attempt must work.
    """
    folder = tmp_path_factory.mktemp("submission")
    with Kernel(folder, 5, sandboxed=True) as inside, Kernel(folder, 5, sandboxed=False) as beside:
        for kernel in (inside, beside):
            assert not kernel.run(TOOLS).error
        yield {True: inside, False: beside}


def attempt(kernel, name, lab, outside):
    """Whether it worked. It is told where everything is: nothing rests on its not being found."""
    page = mmap.mmap(-1, mmap.PAGESIZE)
    page.write(target.SECRET.encode())
    hidden = set(bubblewrap.environment(dict(os.environ)))
    with open("/proc/self/environ", "rb") as file:
        variable = next(
            pair
            for pair in file.read().split(b"\0")
            if pair.partition(b"=")[0].decode() not in hidden
        )
    with open(outside.other) as held:
        at = {
            "secret": target.SECRET.encode(),
            "solution": str(lab.solution),
            "other": str(outside.other),
            "grader": os.getpid(),
            "gradebook": str(outside.gradebook),
            "journal": str(outside.journal),
            "cache": str(outside.journal.parent),
            "pid": outside.process.pid,
            "port": outside.port,
            "abstract": outside.abstract,
            "variable": variable,
            "address": ctypes.addressof(ctypes.c_char.from_buffer(page)),
            "held": held.fileno(),
        }
        lines = "\n".join("    " + line for line in ATTEMPTS[name][1].strip().splitlines())
        ran = kernel.run(
            f"at, answer = {at!r}, False\ntry:\n{lines}\nexcept OSError:\n   "
            " pass\nprint(json.dumps(answer))"
        )
    assert not ran.error, ran.error
    return json.loads("".join(output["text"] for output in ran.outputs))


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_is_outside_cannot_be_reached(kernels, lab, outside, name):
    assert attempt(kernels[True], name, lab, outside) is False


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, (who, _) in ATTEMPTS.items()
        if who == WHERE_NOTHING_HOLDS_IT or (who == AS_ROOT and os.geteuid() == 0)
    ],
)
def test_the_attempt_is_real(kernels, lab, tmp_path, name):
    with target.Outside(tmp_path / "twin") as outside:
        assert attempt(kernels[False], name, lab, outside) is True
        assert ("a connection" in outside.harm()) == ("connects(" in ATTEMPTS[name][1])

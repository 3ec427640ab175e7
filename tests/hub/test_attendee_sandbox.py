"""What an attendee's process can reach from its sandbox.

That is about the machine, the course, and a neighbour.
"""

import socket

import pytest

from manyhands.hub.folder import SOLUTIONS
from manyhands.hub.servers.limits import ByNumber, Limits, disk_used, way

TRY = """
import os, socket, subprocess, sys
def attempt(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
"""


def test_the_room_is_the_persons_own(neighbours):
    printed = neighbours.run(
        "ann",
        TRY
        + """
import getpass
print(os.getuid(), os.getgid(), os.getgroups(), getpass.getuser(), os.getcwd(), sorted(os.listdir("/home")))
print(attempt(lambda: open("mine", "w").write("x")), oct(os.stat(".").st_mode & 0o777))
""",
    ).splitlines()
    uid = neighbours.accounts.get("ann").uid
    assert printed[0] == f"{uid} {uid} [] ann /home/ann ['ann']" and printed[1] == "1 0o700"
    assert (neighbours.accounts.home("ann") / "mine").stat().st_uid == uid


def test_no_way_back_to_root(neighbours):
    printed = neighbours.run(
        "ann",
        TRY
        + """
print(attempt(lambda: os.setuid(0)))
facts = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
print([facts[name].strip() for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")])
print(attempt(lambda: open("/usr/bin/mine", "w")), attempt(lambda: os.mkdir("/mine")), attempt(lambda: open("/course/mine", "w")))
print(subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0)
print(attempt(lambda: os.kill(1, 9)))
""",
    ).splitlines()
    assert printed[0] == "PermissionError" and printed[1] == str(["0" * 16] * 4 + ["1"])
    assert (
        set(printed[2].split()) <= {"OSError", "PermissionError"} and len(printed[2].split()) == 3
    )
    assert printed[3] == "True" and printed[4] == "PermissionError"


def test_a_neighbours_files_and_the_hubs_are_not_there(neighbours):
    folder = neighbours.accounts.folder
    secret = neighbours.accounts.home("ben") / "secret"
    secret.write_text("ben's")
    secret.chmod(0o666)
    printed = neighbours.run(
        "ann",
        TRY
        + """
for path in sys.argv[1:]:
    print(attempt(lambda: open(path).read()))
""",
        secret,
        folder / "accounts.json",
        folder / "log.jsonl",
        "/home/ben/secret",
        "/etc/shadow",
        "/root/.bashrc",
    )
    assert printed.splitlines() == ["FileNotFoundError"] * 6


def test_an_instructor_reads_the_solutions_and_changes_none(neighbours):
    folder = neighbours.accounts.folder / SOLUTIONS
    folder.parent.mkdir(mode=0o700)
    folder.mkdir(mode=0o755)
    (folder / "06_ddp.ipynb").write_text("solved")
    program = (
        TRY
        + """
print(attempt(lambda: open("/solved/06_ddp.ipynb").read()), attempt(lambda: open("/solved/06_ddp.ipynb", "w")), attempt(lambda: open(sys.argv[1]).read()))
"""
    )
    printed = neighbours.run(
        "ann", program, folder / "06_ddp.ipynb", shown={str(folder): "/solved"}
    ).split()
    assert (
        printed[0] == "solved"
        and printed[1] in ("OSError", "PermissionError")
        and printed[2] == "FileNotFoundError"
    )
    assert (
        neighbours.run("ben", program, folder / "06_ddp.ipynb").split() == ["FileNotFoundError"] * 3
    )


def test_no_solution_and_no_source_can_be_found(neighbours):
    printed = neighbours.run(
        "ann",
        TRY
        + """
import manyhands
from pathlib import Path
clone = Path(manyhands.__file__).parents[2]
print(sorted(path.name for path in clone.iterdir()), sorted(path.name for path in (clone / "src").iterdir()))
skipped = ("/proc", "/sys", "/dev", "/usr", sys.prefix, sys.base_prefix)
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in skipped]
    if "solutions" in folders or "sources" in folders or "mutants" in folders or ".git" in folders:
        print("found in", folder)
""",
    )
    assert "found in" not in printed and "solutions" not in printed and "tests" not in printed
    assert printed.splitlines()[0].endswith("['manyhands']")


def test_a_neighbours_processes_and_ports_cannot_be_reached(neighbours):
    listening = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], "
        "flush=True); sys.stdin.read()"
    )
    ben = neighbours.start("ben", listening)
    port = ben.stdout.readline().strip()
    with socket.create_server(("127.0.0.1", 0)) as machine:
        printed = neighbours.run(
            "ann",
            TRY
            + """
import psutil
print(sorted({process.uids().real for process in psutil.process_iter()} - {0, os.getuid()}))
for port in sys.argv[1:]:
    print(attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), timeout=5)))
print(attempt(lambda: socket.create_connection(("192.0.2.1", 80), timeout=5)), attempt(lambda: socket.getaddrinfo("example.org", 80)))
print([name for name in os.listdir("/sys/class/net")] if os.path.isdir("/sys/class/net") else ["lo"])
""",
            port,
            machine.getsockname()[1],
        )
    assert printed.splitlines() == [
        "[]",
        "ConnectionRefusedError",
        "ConnectionRefusedError",
        "OSError gaierror",
        "['lo']",
    ]
    assert ben.poll() is None


def test_shared_memory_and_temporary_files_are_the_rooms_own(neighbours):
    write = (
        "import sys\nfor path in ('/tmp/x', '/dev/shm/x', '/var/tmp/x'): open(path, "
        "'w').write('x')\nprint('ready', flush=True); sys.stdin.read()"
    )
    ben = neighbours.start("ben", write)
    assert ben.stdout.readline().strip() == "ready"
    assert (
        neighbours.run(
            "ann",
            "import os; print([os.path.exists(path) for path in ('/tmp/x', '/dev/shm/x', "
            "'/var/tmp/x')])",
        )
        == "[False, False, False]"
    )


def test_a_link_in_the_home_leads_nowhere_outside(neighbours):
    folder = neighbours.accounts.folder
    (neighbours.accounts.home("ann") / "way_out").symlink_to(folder / "accounts.json")
    assert (
        neighbours.run("ann", TRY + "print(attempt(lambda: open('way_out').read()))")
        == "FileNotFoundError"
    )


def test_when_the_room_ends_all_its_processes_end(neighbours):
    program = """
import subprocess, sys
children = [subprocess.Popen(["setsid", "sleep", "600"]) for _ in range(3)]
print("ready", flush=True); sys.stdin.read()
"""
    from hub.running_hub import Hub, wait_for

    ann = neighbours.start("ann", program)
    assert ann.stdout.readline().strip() == "ready"
    mine = lambda: Hub.processes_of(neighbours, "ann")  # noqa: E731
    assert len(mine()) >= 4
    ann.kill()
    wait_for(lambda: not mine(), "processes are left", timeout_s=20)


@pytest.mark.parametrize(
    "held_by", sorted({way(), ByNumber}, key=str), ids=lambda held_by: held_by.__name__
)
def test_too_many_processes_are_refused(neighbours, held_by):
    printed = neighbours.run(
        "ann",
        """
import os, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    pass
print(made)
""",
        limit=Limits(processes=40),
        way=held_by,
    )
    assert 10 <= int(printed) < 40


def test_too_much_memory_ends_the_greedy_process_only(neighbours):
    if way() is ByNumber:
        pytest.skip("no control group can be made here")  # no package brings one
    printed = neighbours.run(
        "ann",
        """
import subprocess, sys
greedy = subprocess.run([sys.executable, "-c", "x = bytearray(600 * 2**20); print('too much')"], capture_output=True, text=True)
print(greedy.returncode, greedy.stdout)
""",
        limit=Limits(memory_bytes=300 * 2**20),
    )
    assert printed == "-9"


def test_no_file_grows_beyond_the_disk_limit(neighbours):
    printed = neighbours.run(
        "ann",
        """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("large", "wb") as file:
    try:
        for _ in range(20):
            file.write(bytes(2**20)); file.flush()
    except OSError as error:
        print(error.strerror)
""",
        limit=Limits(disk_bytes=10 * 2**20),
    )
    assert printed == "File too large"
    assert 10 * 2**20 <= disk_used(neighbours.accounts.home("ann")) < 11 * 2**20

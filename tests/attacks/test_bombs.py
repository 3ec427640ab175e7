"""Code that uses up the machine, or the grader's time, or that does not go away.

The first answer is honest: its points stay, the second attacks. The grader comes back, says why,
and nothing is left.
"""

from contextlib import closing
from dataclasses import replace

import pytest
import target
from nbformat.v4 import new_code_cell

from manyhands.isolation import process_limits
from manyhands.isolation.kernel_limits import Limits

SMALL = Limits(
    cell_s=30, interrupt_s=1, memory_bytes=400 * 2**20, processes=40, output_bytes=30 * 2**20
)
SHORT = replace(SMALL, cell_s=3)
# a fork of the kernel takes 1.5 MB: 400 tasks, all that the control group lets start, stay far
# below this, however late the watcher looks
FORKS = replace(SMALL, memory_bytes=2**30)
TOOLS = """
import ctypes, os, pathlib, signal, subprocess, sys, threading, time
from IPython.display import display
"""
MEMORY, PROCESSES, OUTPUT, DIED, CELL = (
    "GB of memory",
    "more than 40 processes",
    "showed more than 30 MB",
    "The kernel ended",
    "could not be interrupted",
)
# name -> (the body of the second answer, what a note says)
BOMBS = {
    "memory: one large array": ("return len(b'x' * 2**30)", MEMORY),
    "memory: grows for ever": ("kept = []\n    while True: kept.append(bytearray(2**22))", MEMORY),
    "memory: in files of /dev/shm": (
        """
    for number in range(1000):
        pathlib.Path(f"/dev/shm/{number}").write_bytes(bytes(2**20))""",
        "No space left",
    ),
    "memory: in files of its folder": (
        """
    for number in range(1000):
        pathlib.Path(str(number)).write_bytes(bytes(2**20))""",
        "No space left",
    ),
    "memory: in files without a name": (
        """
    kept = [os.memfd_create("x") for _ in range(100)]
    for file in kept:
        os.write(file, bytes(2**23))
    time.sleep(60)""",
        MEMORY,
    ),
    "processes: forks for ever": (
        """
    while True:
        try:
            if os.fork() == 0: time.sleep(60)
        except OSError:
            time.sleep(0.1)""",
        PROCESSES,
    ),
    "processes: each fork forks": (
        """
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)""",
        f"{PROCESSES}|{DIED}",
    ),
    # what the grader has not read yet lies in the kernel's memory: on a busy machine that is full
    # first
    "output: lines for ever": ("while True: print('x' * 100_000)", f"{OUTPUT}|{MEMORY}"),
    "output: displays for ever": (
        "while True: display({'text/plain': 'x' * 100_000}, raw=True)",
        f"{OUTPUT}|{MEMORY}",
    ),
    "output: one message that is longer than any may be": (
        """
    display({"text/plain": "x" * (70 * 2**20)}, raw=True)
    time.sleep(60)""",
        OUTPUT,
    ),
    "time: sleeps": ("time.sleep(600)", "it took more than 3 s and was interrupted"),
    "time: swallows interrupts": (
        """
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass""",
        CELL,
    ),
    "time: ignores the signal in a loop of C": (
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n    sum(range(10**12))",
        CELL,
    ),
    "time: stops itself": ("os.kill(os.getpid(), signal.SIGSTOP)", CELL),
    "end: exits at once": ("os._exit(0)", DIED),
    "end: crashes": ("ctypes.string_at(0)", DIED),
    "end: kills its parent and all others": (
        """
    for place in (os.getppid(), 1, -1, 0):
        try:
            os.kill(place, signal.SIGKILL)
        except OSError:
            pass
    time.sleep(600)""",
        DIED,
    ),
    "end: closes the sockets to the grader": (
        """
    for number in range(3, 200):
        try:
            os.close(number)
        except OSError:
            pass
    time.sleep(600)""",
        f"{OUTPUT}|{DIED}|{CELL}",
    ),
}


def there_are_control_groups():
    with closing(process_limits.memory_group(2**30, 100)) as group:
        return not isinstance(group, process_limits.NoGroup)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_cost_their_own_points(lab, attack, name):
    body, words = BOMBS[name]
    if "without a name" in name and not there_are_control_groups():
        pytest.skip("no control group can be made here, and nothing else sees such files")
    notebook = lab.handed_in(total=body.strip())
    notebook.cells.insert(1, new_code_cell(TOOLS))
    got = attack(
        notebook, limits={"time": SHORT, "processes": FORKS}.get(name.split(":")[0], SMALL)
    )
    assert got.points == (2, 4), got.notes
    messages = got.notes + str([criterion.detail for criterion in got.grade.criteria])
    assert any(word in messages for word in words.split("|")), messages


LEAVING = """
import atexit, os, pathlib, subprocess, sys, threading, time
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 100)
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
        os._exit(0)
"""
STAYS = {
    "a daemon in a session of its own, with nothing of its environment": LEAVING
    + "daemon(); time.sleep(0.3)",
    "a daemon that is started when the kernel ends": LEAVING + "atexit.register(daemon)",
    "a thread that keeps the kernel from ending": LEAVING
    + "threading.Thread(target=time.sleep, args=(600,)).start()",
    "a process that ignores all signals": LEAVING
    + """
import signal
if os.fork() == 0:
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    time.sleep(600)""",
}


@pytest.mark.parametrize("name", STAYS)
def test_nothing_stays_behind(lab, attack, name):
    """That no process is left is looked at when the test ends, for every attack."""
    notebook = lab.handed_in()
    notebook.cells.insert(1, new_code_cell(STAYS[name]))
    assert attack(notebook).points == (4, 4)


def test_no_processes_are_left_where_there_is_no_sandbox_but_a_control_group(lab, monkeypatch):
    """The learner's own `manyhands check` on a machine without bubblewrap."""
    if not there_are_control_groups():
        pytest.skip("no control group can be made here")
    groups, own = [], process_limits.memory_group
    monkeypatch.setattr(
        process_limits, "memory_group", lambda *limits: groups.append(own(*limits)) or groups[-1]
    )
    notebook = lab.handed_in()
    notebook.cells.insert(
        1, new_code_cell(STAYS["a daemon in a session of its own, with nothing of its environment"])
    )
    seen = target.Seen()
    got = target.graded(lab, notebook, seen, sandboxed=False)
    assert got.points == (4, 4)
    assert not [folder for group in groups for folder in group.folders if folder.exists()]


def test_a_folder_that_only_looks_like_a_control_group_is_not_taken_for_one(tmp_path, monkeypatch):
    monkeypatch.setattr(process_limits, "CGROUPS", tmp_path)
    monkeypatch.setattr(process_limits, "own_group", lambda controller: "")
    (tmp_path / "memory").mkdir()
    (tmp_path / "pids").mkdir()
    assert isinstance(process_limits.memory_group(2**30, 100), process_limits.NoGroup)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["memory", "pids"]

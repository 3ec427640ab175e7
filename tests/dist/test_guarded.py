"""A command under the guard: what it prints, and that nothing which came of it is left."""

import subprocess
import sys
import time

import psutil

from manyhands.cluster.launch.guarded import guarded

ORPHAN = (
    "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; "
    "time.sleep(600)'], start_new_session=True).pid)"
)


def test_what_it_prints_comes_back_with_its_errors():
    text = guarded(
        "python",
        "-c",
        "import os, sys; print(os.environ['WORD']); print('bad', file=sys.stderr)",
        env={"WORD": "heard"},
    )
    assert sorted(text.split()) == ["bad", "heard"]


def test_a_process_in_a_session_of_its_own_ends_with_it():
    assert not psutil.pid_exists(int(guarded("python", "-c", ORPHAN)))


def test_after_its_time_it_is_ended():
    text = guarded("python", "-uc", ORPHAN + "; import time; time.sleep(600)", timeout_s=3)
    pid, *words = text.split(maxsplit=1)
    assert words == ["not done after 3 s\n"] and not psutil.pid_exists(int(pid))


COPIES = """
from manyhands.cluster.launch import script_copy
from manyhands.cluster.launch.guarded import guarded

script_copy.LARGE_BYTES = 1  # so that data.txt is seen through the read-only mount
with script_copy.copied("script.py") as place:
    guarded("python", "-c", "import time; time.sleep(600)")
"""


def test_a_copy_is_removed_although_the_command_was_killed_and_its_originals_stay(tmp_path):
    for name, text in (("script.py", ""), ("data.txt", "rows")):
        (tmp_path / "script" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "script" / name).write_text(text)
    (tmp_path / "copies").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "import tempfile; tempfile.tempdir = '../copies'" + COPIES],
        cwd=tmp_path / "script",
    )
    deadline = time.monotonic() + 60
    while (
        time.monotonic() < deadline
        and len(psutil.Process(process.pid).children(recursive=True)) < 2
    ):
        time.sleep(0.1)
    assert len(list((tmp_path / "copies").glob("*/script/script.py"))) == 1
    process.kill()
    process.wait()
    while time.monotonic() < deadline and any((tmp_path / "copies").iterdir()):
        time.sleep(0.1)
    assert (
        not any((tmp_path / "copies").iterdir())
        and (tmp_path / "script" / "data.txt").read_text() == "rows"
    )

"""A command under the guard: what it prints, and that nothing which came of it is left."""

import psutil

from manyhands.cluster.launch.guarded import guarded

ORPHAN = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True).pid)"


def test_what_it_prints_comes_back_with_its_errors():
    text = guarded("python", "-c", "import os, sys; print(os.environ['WORD']); print('bad', file=sys.stderr)", env={"WORD": "heard"})
    assert sorted(text.split()) == ["bad", "heard"]


def test_a_process_in_a_session_of_its_own_ends_with_it():
    assert not psutil.pid_exists(int(guarded("python", "-c", ORPHAN)))


def test_after_its_time_it_is_ended():
    text = guarded("python", "-uc", ORPHAN + "; import time; time.sleep(600)", timeout_s=3)
    pid, *words = text.split(maxsplit=1)
    assert words == ["not done after 3 s\n"] and not psutil.pid_exists(int(pid))

"""Jobs side by side.

What each does to its process is its own affair, and none outlives the one that started them.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from manyhands.grading.classroom import pool
from manyhands.isolation import process_limits


def work(job):
    if job == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if job == "exits":
        os._exit(3)
    if job == "raises":
        raise ValueError("no")
    return job * 2


def test_a_job_that_fails_is_told_and_the_others_are_done(tmp_path):
    jobs = [1, "dies", 2, "exits", "raises", 3]
    done = dict(pool.run(jobs, work, slots=2, cost=lambda job: 1, scratch=tmp_path))
    assert {job: done[job] for job in (1, 2, 3)} == {1: 2, 2: 4, 3: 6}
    assert (
        done["dies"].why.endswith("code -9")
        and done["exits"].why.endswith("code 3")
        and done["raises"].why == "ValueError: no"
    )


def test_a_job_that_takes_too_long_is_stopped_and_told_and_the_others_are_done(
    tmp_path, monkeypatch
):
    """One that does not hear that it is to stop, as in a loop of C, is killed."""
    monkeypatch.setattr(pool, "STOP_TIMEOUT_S", 2)

    def work_or_hang(job):
        if job == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return job if isinstance(job, int) else wait_forever(tmp_path)(job)

    done = dict(
        pool.run(
            ["deaf", "hangs", 1, 2],
            work_or_hang,
            slots=3,
            cost=lambda job: 1,
            scratch=tmp_path,
            wall_s=3,
        )
    )
    assert (done[1], done[2]) == (1, 2)
    for job in ("deaf", "hangs"):
        assert "stopped after 3 s" in done[job].why
        assert not psutil.pid_exists(int((tmp_path / f"started-{job}").read_text()))
    assert [path.name for path in tmp_path.glob("cleaned-*")] == ["cleaned-hangs"]


def test_a_job_that_takes_too_much_memory_is_told_and_the_others_are_done(tmp_path):
    done = dict(
        pool.run(
            [2**20, 2**29],
            lambda job: len(bytearray(job)),
            slots=1,
            cost=lambda job: 1,
            scratch=tmp_path,
            memory_bytes=2**28,
        )
    )
    assert (
        done[2**20] == 2**20
        and "took more than 256 MB of the grader's own memory" in done[2**29].why
    )


def test_what_a_job_starts_has_not_its_limit_of_memory(tmp_path):
    def start(_):
        with process_limits.no_own_limit():
            return subprocess.run(
                [sys.executable, "-c", "print(len(bytearray(2**29)))"],
                capture_output=True,
                text=True,
            ).stdout

    assert dict(
        pool.run([1], start, slots=1, cost=lambda job: 1, scratch=tmp_path, memory_bytes=2**28)
    ) == {1: f"{2**29}\n"}


def test_places_are_kept_to(tmp_path):
    running = multiprocessing.get_context("fork").Value("i", 0)

    def count(job):
        with running.get_lock():
            running.value += job
            most = running.value
        time.sleep(0.05)
        with running.get_lock():
            running.value -= job
        return most

    for places, jobs in ((4, [1, 1, 1, 1, 1, 3, 3]), (1, [3, 1, 2])):
        most = [
            result
            for _, result in pool.run(
                jobs, count, slots=places, cost=lambda job: job, scratch=tmp_path
            )
        ]
        assert max(most) <= max(places, *jobs) and len(most) == len(jobs)


def wait_forever(marks):
    def wait(job):
        try:
            (marks / f"started-{job}").write_text(str(os.getpid()))
            time.sleep(600)
        finally:
            (marks / f"cleaned-{job}").touch()

    return wait


def test_a_signal_that_comes_while_a_job_starts_leaves_no_job_behind(tmp_path, monkeypatch):
    start = multiprocessing.context.ForkProcess.start

    def parent():
        def start_and_be_stopped(process):
            start(process)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)

        monkeypatch.setattr(multiprocessing.context.ForkProcess, "start", start_and_be_stopped)
        signal.signal(signal.SIGTERM, lambda *_: exit(143))
        list(pool.run([1], wait_forever(tmp_path), slots=1, cost=lambda job: 1, scratch=tmp_path))

    process = multiprocessing.get_context("fork").Process(target=parent)
    process.start()
    process.join(60)
    assert process.exitcode == 143
    for mark in tmp_path.glob("started-*"):
        assert not psutil.pid_exists(int(mark.read_text()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_jobs_end_and_clean_up_when_their_parent_is_killed(tmp_path, how):
    def parent():
        signal.signal(signal.SIGTERM, lambda *_: exit(143))
        # a shell's job in the background ignores it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        list(
            pool.run([1, 2], wait_forever(tmp_path), slots=2, cost=lambda job: 1, scratch=tmp_path)
        )

    process = multiprocessing.get_context("fork").Process(target=parent)
    process.start()
    until = time.monotonic() + 60
    while len([*tmp_path.glob("started-*")]) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(process.pid, how)
    process.join(60)
    while len([*tmp_path.glob("cleaned-*")]) < 2:
        assert time.monotonic() < until + 60
        time.sleep(0.02)
    for mark in tmp_path.glob("started-*"):
        while psutil.pid_exists(int(mark.read_text() or 0)):
            assert time.monotonic() < until + 60
            time.sleep(0.02)

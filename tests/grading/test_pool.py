"""Jobs side by side: what each does to its process is its own affair, and none outlives the one that started them."""

import multiprocessing
import os
import signal
import time

import psutil
import pytest
from manyhands.grading import pool


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
    done = dict(pool.run(jobs, work, places=2, cost=lambda job: 1, scratch=tmp_path))
    assert {job: done[job] for job in (1, 2, 3)} == {1: 2, 2: 4, 3: 6}
    assert done["dies"].why.endswith("code -9") and done["exits"].why.endswith("code 3") and done["raises"].why == "ValueError: no"


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
        most = [result for _, result in pool.run(jobs, count, places=places, cost=lambda job: job, scratch=tmp_path)]
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
        list(pool.run([1], wait_forever(tmp_path), places=1, cost=lambda job: 1, scratch=tmp_path))

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
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
        list(pool.run([1, 2], wait_forever(tmp_path), places=2, cost=lambda job: 1, scratch=tmp_path))

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

"""The thread that reads the main thread's stack."""

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref
from typing import ClassVar

import pytest

from manyhands.cli.pythons import NoPythonError, find_python
from manyhands.cluster.on_rank import running_call
from manyhands.cluster.on_rank.stack import Stack, is_user_file


class Garbage:
    """What only a collection finds; says in which functions of stack.py that happened."""

    found_in: ClassVar = []

    def __init__(self):
        self.me = self

    def __del__(self):
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.endswith("stack.py"):
                self.found_in.append(frame.f_code.co_name)
            frame = frame.f_back


def stand(depth, arrived, go):
    """Stand in `depth` calls until told to go."""
    if depth:
        stand(depth - 1, arrived, go)
    else:
        arrived.set()
        go.wait()


def test_no_collection_starts_while_another_threads_frames_are_read():
    """Its finalizers could let the other thread leave the frame that is being read.

    In Python 3.11 this ends the process.
    """
    arrived, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=stand, args=(200, arrived, go))
    thread.start()
    arrived.wait()
    before = gc.get_threshold()
    gc.enable()  # a test in this process may have left it off
    Garbage.found_in.clear()
    stack = Stack(thread.ident)
    try:
        gc.collect()
        gc.set_threshold(20)  # objects; the frames of 200 calls are more
        for _ in range(10):
            garbage = Garbage()
            del garbage
            state = stack.look()
    finally:
        gc.set_threshold(*before)
        go.set()
        thread.join()
    assert "_look" not in Garbage.found_in
    assert gc.isenabled(), "the collector is switched on again"
    assert [line["function"] for line in state["lines"]].count("stand") == 201


def test_a_collector_that_was_switched_off_stays_off():
    gc.disable()
    try:
        Stack(threading.main_thread().ident).look()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_packages_are_nobodys_own_wherever_they_lie():
    assert is_user_file("/home/me/train.py") and is_user_file("/home/me/site-packages.py")
    assert not is_user_file(
        "/opt/site/lib/python3.12/site-packages/IPython/core/interactiveshell.py"
    )
    assert not is_user_file("/usr/lib/python3/dist-packages/numpy/core.py")


class Door:
    """A call of a C function by the name of a variable.

    A thread stays in it until it is let go.
    """

    def __init__(self):
        self.arrived, self.go = threading.Event(), threading.Lock()
        self.go.acquire()
        self.seen = None

    def pass_through(self, keep_locals=False):
        """Let an object go behind the door.

        It is noted whether it has died then, and what `locals()` has of it.
        """
        go, thing = self.go, Garbage.__new__(Garbage)
        there = weakref.ref(thing)
        here = locals() if keep_locals else None
        self.arrived.set()
        go.acquire()
        thing = None
        self.seen = there(), here


def looked_at(door, **how):
    thread = threading.Thread(target=door.pass_through, kwargs=how)
    thread.start()
    door.arrived.wait()
    stack = Stack(thread.ident)
    for _ in range(200):  # it may not have come to the door yet
        stack.look()
    door.go.release()
    thread.join()
    return door.seen


def test_a_look_keeps_nothing_alive():
    """A rank that let a tensor go while the watch looked would be said to keep too much."""
    thing, _ = looked_at(Door())
    assert thing is None


def test_a_look_empties_nobodys_locals():
    _, here = looked_at(Door(), keep_locals=True)
    assert {"go", "thing", "there"} <= set(here)


def test_horovods_wait_counts_as_waiting_however_often_it_asks():
    """It asks every millisecond whether the message has arrived.

    This takes more of a busy core than an idle thread.
    """
    library = {}
    path = "/lib/site-packages/horovod/torch/mpi_ops.py"
    exec(compile("def synchronize(handle):\n    go.acquire()\n", path, "exec"), library)
    library["go"] = threading.Lock()  # its functions have no frame, as those of a library in C++
    library["go"].acquire()
    thread = threading.Thread(
        target=lambda: [library["synchronize"](handle) for handle in range(2)]
    )
    thread.start()
    # it seems to compute
    stack, deadline = Stack(thread.ident, itertools.count().__next__), time.monotonic() + 20
    for handle in range(2):
        while not ((state := stack.look())["blocked"] and state["key"].endswith(f" {handle}")):
            assert time.monotonic() < deadline, state
        library["go"].release()
    thread.join()


CALLS = """
import importlib.util, sys

place = importlib.util.spec_from_file_location("running_call", sys.argv[1])
running_call = importlib.util.module_from_spec(place)
place.loader.exec_module(running_call)

def told(*given, **named):
    print(repr(running_call.text_of_running_call(sys._getframe(1))))

class dist:
    new_group = init = staticmethod(told)

dist.init("gloo", world_size=int("2"))
told(told(1), dist.new_group([0], backend="gloo")) if told(2) is None else told(3)
dist.init(
    backend="gloo",
    rank=0)
named = {}
named[told("key")] = told("value")
"""


def test_the_text_of_a_call_without_positions_in_python_3_10(tmp_path):
    try:
        python = find_python(os.environ, ["3.10"])
    except NoPythonError:
        pytest.skip("there is no Python 3.10")
    (tmp_path / "calls.py").write_text(CALLS)
    done = subprocess.run(
        [python, tmp_path / "calls.py", running_call.__file__], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == list(
        map(
            repr,
            [
                'dist.init("gloo", world_size=int("2"))',
                "told(2)",
                "told(1)",
                'dist.new_group([0], backend="gloo")',
                'told(told(1), dist.new_group([0], backend="gloo"))',
                'dist.init(\n    backend="gloo",\n    rank=0)',
                'told("value")',
                'told("key")',
            ],
        )
    ), done.stderr

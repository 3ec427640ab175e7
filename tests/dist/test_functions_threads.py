"""Several threads of a rank that communicate at the same time, as double buffering does."""

import threading

import pytest
import torch

from manyhands import comm, functions
from manyhands.comm.message_queue import current_wait

MESSAGES = 200


def one_tag(c):
    """Rank 0 sends numbers under one tag; two threads of rank 1 share them."""
    if c.rank == 0:
        for i in range(MESSAGES):
            functions.send(torch.tensor(float(i)), c, 1)
        return None
    got = []

    def receive():
        for _ in range(MESSAGES // 2):
            got.append(functions.recv(c, 0).item())

    _together(receive, receive)
    return sorted(got)


def _together(*functions_of_threads):
    threads = [threading.Thread(target=function) for function in functions_of_threads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_share_the_messages_of_a_tag(pool):
    assert pool.values(one_tag, 2)[1] == list(range(MESSAGES))


def a_tag_each(c):
    """Both ranks send and receive in two threads, each under a tag of its own."""
    got = {0: [], 1: []}

    def exchange(tag):
        for i in range(MESSAGES):
            functions.send(torch.tensor(float(i)), c, 1 - c.rank, tag=tag)
            got[tag].append(functions.recv(c, 1 - c.rank, tag=tag).item())

    _together(lambda: exchange(0), lambda: exchange(1))
    return got


def test_threads_with_a_tag_each(pool):
    assert pool.values(a_tag_each, 2) == [{tag: list(range(MESSAGES)) for tag in range(2)}] * 2


def one_ends_first(c):
    """A thread of rank 1 waits for tag 1, and ends; the main thread goes on waiting for tag 2.

    The main thread has begun earlier or later. A caller who asks it hears so.
    """
    if c.rank == 0:
        functions.send(torch.ones(()), c, 1, tag=1)
        functions.recv(c, 1, tag=3)  # rank 1's thread has ended
        try:
            functions.recv(c, 1, tag=4)  # nobody sends that
        except comm.CommunicationError as error:
            return str(error)
    done = threading.Event()

    def receive():
        functions.recv(c, 0, tag=1)
        functions.send(torch.ones(()), c, 0, tag=3)
        done.set()

    thread = threading.Thread(target=receive)
    thread.start()
    try:
        functions.recv(c, 0, tag=2)  # nobody sends that
    except comm.CommunicationError:
        thread.join()
        return done.is_set(), current_wait()


@pytest.mark.parametrize("turn", range(3))
def test_where_a_rank_of_two_threads_is(pool, turn):
    state, (done, waits) = pool.values(one_ends_first, 2, timeout_s=3)
    # either may be the first whose time is over
    assert "recv from rank 0, tag 2" in state and "in no call" not in state
    assert done and waits is None

"""Ranks that end while others wait for them, and what the others can still do."""

import pytest
from test_start import by_environment, by_mpi, program

PROGRAM = """
import os, signal, sys, time
import torch
from manyhands import functions
c = comm.create_communicator(timeout_s={timeout_s})
c.barrier()
if c.rank == 1:
    {end}
begun = time.monotonic()
try:
    {call}
except comm.CommunicationError as error:
    sys.stdout.write("%s %s\\n" % ({told}, time.monotonic() - begun < 30))  # in one piece: mpiexec mixes what ranks write
other = 2 - c.rank                                              # ranks 0 and 2 go on without rank 1
if c.rank == 0:
    x = torch.ones(3, requires_grad=True)
    functions.send(x, c, 2, tag=7).backward()
    print(x.grad.tolist())
else:
    (2 * functions.recv(c, 0, tag=7)).sum().backward()
    print("received")
"""
CALLS = {
    "recv": "functions.recv(c, 1)",
    "allgather": "functions.allgather(c, torch.ones(3))",
    "large send": "[functions.send(torch.zeros(100_000), c, 1) for _ in range(40)]",
}


GONE = 'str(error).split(":")[-1].strip()'


def expected(text):
    return [[text, "[2.0, 2.0, 2.0]"], [text, "received"]]


def text(end, call, told=GONE, timeout_s=60):
    return PROGRAM.format(end=end, call=CALLS[call], told=told, timeout_s=timeout_s)


@pytest.mark.parametrize("call", CALLS)
def test_a_rank_that_exits(tmp_path, call, warm):
    runs = by_environment(program(tmp_path, text("sys.exit(0)", call)), 3, warm)
    assert [runs[rank][1].splitlines() for rank in (0, 2)] == expected(
        "rank 1 will not arrive, because it has ended. True"
    ), runs


def test_a_rank_that_is_killed(tmp_path, warm):
    """Its connections may tell, else the time-out does."""
    runs = by_environment(
        program(
            tmp_path,
            text(
                "os.kill(os.getpid(), signal.SIGKILL)", "recv", '"rank 1" in str(error).lower()', 5
            ),
        ),
        3,
        warm,
    )
    assert [runs[rank][1].splitlines() for rank in (0, 2)] == expected("True True"), runs


def test_a_rank_that_exits_under_mpi(tmp_path, warm):
    status, out, err = by_mpi(program(tmp_path, text("sys.exit(0)", "allgather")), 3, warm)
    # mpiexec mixes lines
    assert (
        out.count("rank 1 will not arrive, because it has ended. True") == 2
        and "[2.0, 2.0, 2.0]" in out
        and "received" in out
    ), (status, out, err)


IN_THE_MIDDLE = """
import os, signal, time
import torch
from manyhands import functions
from pathlib import Path
c = comm.create_communicator("gloo", timeout_s=60)
wire, begun_to_take_in = c._exchange.wire, Path({here!r}) / "begun"
fetch = wire.fetch
def tells(*place):
    begun_to_take_in.touch()
    fetch(*place)
def dies(*payload, last):
    while not begun_to_take_in.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
wire.fetch, wire.send_payload = tells, dies
c.barrier()
if c.rank == 1:
    functions.send(torch.zeros(50_000_000), c, 0)
begun = time.monotonic()
try:
    functions.recv(c, 1)
except comm.CommunicationError as error:
    print(str(error).split(":")[-1].strip(), time.monotonic() - begun < 30)
"""


def test_a_rank_that_is_killed_in_the_middle_of_a_message(tmp_path, warm):
    runs = by_environment(program(tmp_path, IN_THE_MIDDLE.format(here=str(tmp_path))), 2, warm)
    assert runs[0][1].strip() == "rank 1 will not arrive, because its process is gone. True", runs

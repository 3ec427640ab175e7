"""Plain programs, without a notebook.

They run under torchrun and mpirun, ten times in a row, and some end right after the last send.
"""

import sys

import pytest
import ranks

from manyhands.cluster.host.ports import reserve
from manyhands.cluster.launch.command_lines import mpiexec

PROGRAM = """
import sys, torch
from manyhands import comm, functions

c = comm.create_communicator(timeout_s=30)
torch.manual_seed(c.rank)
layer = torch.nn.Linear(4, 4)
if c.rank == 0:
    functions.send(layer(torch.ones(2, 4)), c, 1).backward()
elif c.rank == 1:
    layer(functions.recv(c, 0)).sum().backward()
total = sum(functions.allgather(c, torch.tensor(float(c.rank), requires_grad=True)))
total.backward()
text = f"{c.rank} of {c.size} {c.backend} {total.item():.0f} {layer.weight.grad is not None}"
for line in c.gather_obj(text) or []:
    print(line)
"""

LAST_SEND = """
import torch
from manyhands import comm, functions

c = comm.create_communicator(timeout_s=30)
size = 1_000_000
if c.rank == 0:
    functions.send(torch.full((size,), 7.0), c, 1)
    functions.send(torch.tensor(8.0), c, 1, tag=5)
    c.send_obj("the last word", 1)
else:
    import time
    time.sleep(1)
    first = functions.recv(c, 0)
    print(first.sum().item() == 7 * size, functions.recv(c, 0, tag=5).item(), c.recv_obj(0))
"""

LAST_BACKWARD = """
import torch
from manyhands import comm, functions

c = comm.create_communicator(timeout_s=30)
if c.rank == 0:
    x = torch.ones(1_000_000, requires_grad=True)
    delegate = functions.send(x, c, 1)
    import time
    time.sleep(1)
    delegate.backward()
    print(x.grad.sum().item() == 2_000_000)
else:
    (functions.recv(c, 0) * 2).sum().backward()
"""

ALONE = """
import torch
from manyhands import comm, functions
c = comm.create_communicator()
x = torch.tensor(3.0, requires_grad=True)
(functions.allgather(c, x)[0] * functions.bcast(c, x)).backward()
print(c.rank, c.size, c.backend, x.grad.item())
"""


ENDS = """
import atexit, os, signal, sys

atexit.register(print, "the last word")
print(__name__, __file__, sys.argv, sys.path[0], os.getcwd(), os.environ["HOME"], flush=True)
def end(how):
    if how == "raise":
        raise ValueError("said")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(int(how))
end(sys.argv[1])
"""


def launched(launcher, n, path, python=sys.executable):
    """Run the program at `path` on n ranks: (status, output, errors)."""
    if launcher.startswith("mpirun"):
        return ranks.script([mpiexec(), "-launcher", "fork", "-n", str(n), python, str(path)])
    with reserve(1) as port:
        argv = [
            python,
            "-m",
            "torch.distributed.run",
            "--nnodes=1",
            f"--nproc-per-node={n}",
            "--master-addr=127.0.0.1",
            f"--master-port={port.ports[0]}",
        ]
        return ranks.script([*argv, str(path)])


def expected(launcher, n):
    backend = "mpi" if launcher == "mpirun" else "gloo"
    return [f"{rank} of {n} {backend} {sum(range(n))} {rank < 2}" for rank in range(n)]


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun", "mpirun, gloo"])
def test_a_plain_program(script, launcher):
    path = script(
        PROGRAM.replace("timeout_s", "'gloo', timeout_s") if "gloo" in launcher else PROGRAM
    )
    status, out, err = launched(launcher, 3, path)
    assert (status, out.splitlines(), err) == (0, expected(launcher, 3), "")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["torchrun", "mpirun"])
def test_ten_times_in_a_row(script, launcher, warm):
    path = script(PROGRAM)
    runs = [launched(launcher, 2, path, warm) for _ in range(10)]
    assert [(status, out.splitlines(), err) for status, out, err in runs] == [
        (0, expected(launcher, 2), "")
    ] * 10


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun"])
def test_nothing_is_lost_when_a_rank_ends_after_its_last_send(script, launcher, warm):
    assert launched(launcher, 2, script(LAST_SEND), warm) == (0, "True 8.0 the last word\n", "")


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun"])
def test_nothing_is_lost_when_a_rank_ends_after_its_last_gradient(script, launcher, warm):
    assert launched(launcher, 2, script(LAST_BACKWARD), warm) == (0, "True\n", "")


def test_a_program_on_its_own(script):
    status, out, err = ranks.script([sys.executable, str(script(ALONE))])
    assert (status, out, err) == (0, "0 1 gloo 6.0\n", "")


@pytest.mark.parametrize("how", ["0", "3", "raise", "kill"])
def test_a_python_that_starts_warm_runs_and_ends_a_program_as_any(script, tmp_path, warm, how):
    path = str(script(ENDS))
    as_ever, warm_run = (
        ranks.script([python, path, how], cwd=tmp_path) for python in (sys.executable, warm)
    )
    assert warm_run == as_ever and as_ever[1].startswith("__main__")

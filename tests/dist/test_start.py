"""create_communicator in every situation.

That is alone, under each launcher, too late, twice, and beside torch.distributed.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from ranks import script, torchrun_env

from manyhands.cluster.host.ports import reserve
from manyhands.cluster.launch.command_lines import mpiexec


def program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text("import os, time\nfrom manyhands import comm\n" + text)
    return str(path)


def by_environment(path, n, python=sys.executable, limit_s=90):
    """Run the program on n ranks that find each other by the environment that torchrun sets.

    Returns [(status, out, err)] by rank.
    """
    reservation = reserve(1)
    try:
        with ThreadPoolExecutor(n) as threads:
            runs = [
                threads.submit(
                    script, [python, path], limit_s, torchrun_env(rank, n, reservation.ports[0])
                )
                for rank in range(n)
            ]
            return [run.result() for run in runs]
    finally:
        reservation.close()


def by_mpi(path, n, python=sys.executable, limit_s=90):
    return script([mpiexec(), "-launcher", "fork", "-n", str(n), python, path], limit_s)


def test_a_process_that_was_started_alone_is_rank_0_of_1(tmp_path):
    path = program(
        tmp_path,
        "with comm.create_communicator() as c:\n    print(c, c.allreduce_obj(5), c.intra_size, "
        "c.inter_size)\n",
    )
    assert script([sys.executable, path]) == (
        0,
        "<communicator 'world': rank 0 of 1, gloo> 5 1 1\n",
        "",
    )


def test_auto_takes_mpi_under_mpiexec(tmp_path):
    path = program(
        tmp_path,
        "c = comm.create_communicator()\nprint(f'{c.backend} {c.allreduce_obj(c.rank + 1)}\\n', "
        "end='')\n",
    )
    status, out, err = by_mpi(path, 3)
    assert (status, out.splitlines(), err) == (0, ["mpi 6"] * 3, "")


def test_gloo_works_under_mpiexec(tmp_path, warm):
    path = program(
        tmp_path,
        "c = comm.create_communicator('gloo')\nprint(f'{c.backend} {c.allreduce_obj(c.rank + "
        "1)}\\n', end='')\n",
    )
    status, out, err = by_mpi(path, 3, warm)
    assert (status, sorted(out.splitlines()), err) == (0, ["gloo 6"] * 3, "")


def test_who_comes_too_late_is_named_and_can_be_met_afterwards(tmp_path, warm):
    path = program(
        tmp_path,
        """
if os.environ["RANK"] == "0":
    try:
        comm.create_communicator("gloo", timeout_s=1)
    except comm.CommunicationError as error:
        print(error, flush=True)
        open(os.path.join(os.path.dirname(__file__), "told"), "w").close()
else:
    while not os.path.exists(os.path.join(os.path.dirname(__file__), "told")):
        time.sleep(0.05)
print(comm.create_communicator("gloo", timeout_s=60).allgather_obj(os.environ["RANK"]))
""",
    )
    first, *others = by_environment(path, 3, warm)
    assert first[1].splitlines() == [
        (
            "create_communicator: rank 0 waited 1 s for rank 1, rank 2 of 3 ranks. All ranks that "
            "were started together must call it, equally often."
        ),
        "['0', '1', '2']",
    ]
    assert [run[:2] for run in others] == [(0, "['0', '1', '2']\n")] * 2


def test_beside_torch_distributed_and_twice(tmp_path, warm):
    path = program(
        tmp_path,
        """
import torch, torch.distributed as dist
one = comm.create_communicator("gloo")
part = one.split(one.rank % 2, key=-one.rank)
group, small = one.process_group, part.process_group       # initialises torch.distributed
two = comm.create_communicator("gloo")
x = torch.tensor([1.0])
dist.all_reduce(x, group=group)
dist.all_reduce(x, group=small)
print(dist.get_world_size(), x.item(), two.allreduce_obj(1), part.allgather_obj(one.rank), one.allgather_obj(part.rank))
del one, part
print(two.allreduce_obj(2))
dist.destroy_process_group()
""",
    )
    assert list(by_environment(path, 3, warm)) == [
        (0, "3 6.0 3 [2, 0] [1, 0, 0]\n6\n", ""),
        (0, "3 3.0 3 [1] [1, 0, 0]\n6\n", ""),
        (0, "3 6.0 3 [2, 0] [1, 0, 0]\n6\n", ""),
    ]


def test_nodes_are_told_apart(tmp_path, warm):
    path = program(
        tmp_path,
        "c = comm.create_communicator('gloo')\nprint(c.intra_rank, c.intra_size, c.inter_rank, "
        "c.inter_size)\n",
    )
    reservation = reserve(1)
    with ThreadPoolExecutor(4) as threads:
        runs = [
            threads.submit(
                script, [warm, path], 90, torchrun_env(rank, 4, reservation.ports[0], nodes=2)
            )
            for rank in range(4)
        ]
    reservation.close()
    assert [run.result()[1] for run in runs] == ["0 2 0 2\n", "1 2 0 2\n", "0 2 1 2\n", "1 2 1 2\n"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "create_communicator('glow')",
            "There is no backend 'glow'; there are: auto, gloo, nccl, mpi.",
        ),
        ("create_communicator(timeout_s=0)", "timeout_s is a number of seconds above 0, not 0."),
    ],
)
def test_wrong_arguments(tmp_path, call, message):
    from manyhands import comm  # noqa: F401 - what is evaluated names it

    with pytest.raises(ValueError) as caught:
        eval(f"comm.{call}")
    assert str(caught.value) == message


def test_mpi_under_torchrun_says_how_to_start(tmp_path):
    path = program(
        tmp_path,
        "try:\n    comm.create_communicator('mpi')\nexcept ValueError as error:\n   "
        " print(error)\n",
    )
    env = {**torchrun_env(0, 2, 1), "PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        script([sys.executable, path], env=env)[1]
        == "WORLD_SIZE is 2, but MPI has started 1 process(es): start the program with `mpirun -n 2"
        ' python ...`, or use the "gloo" backend under torchrun.\n'
    )


@pytest.mark.skipif("__import__('torch').cuda.is_available()")
def test_nccl_without_a_gpu():
    from manyhands import comm

    with pytest.raises(ValueError, match='"nccl" backend needs a GPU for every rank'):
        comm.create_communicator("nccl")

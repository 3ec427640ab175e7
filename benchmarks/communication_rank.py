"""The ranks of our functions, of the messages by hand, and of torch's own functions.

They take the steps that benchmarks/communication.py hands out.

A step is one forward and one backward on this rank. The gradient that enters backward is rank + 1
everywhere, so that each result is known.
"""

import os

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as torch_functions
import turns
from communication_hand import Bare, Collective, Gloo, Hand, Mpi
from mpi4py import MPI

from manyhands import comm, functions, ledger

torch.set_num_threads(1)
rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
dist.init_process_group(
    "gloo", init_method=f"file://{os.environ['TURNS_STORE']}", rank=rank, world_size=size
)
by_hand = {
    "mpi": Mpi(MPI.COMM_WORLD.Dup()),
    "gloo": Gloo(dist.group.WORLD._get_backend(torch.device("cpu")), rank),
}
ours = {backend: comm.create_communicator(backend) for backend in by_hand}


def expected(call):
    """The gradients of this rank's leaves."""
    return {
        "send, recv": [2.0] if rank == 0 else [],
        "bcast": [3.0] if rank == 0 else [],
        "allgather": [3.0],
        "alltoall": [peer + 1.0 for peer in range(size)],
    }[call]


def make(contestant, call, shape):
    """(step, check, around) for a contestant, a call and a shape.

    Contestants are "ours", "ours, ledger on", "autograd", "loop", "collective" over "mpi" or
    "gloo", or "torch".
    """
    who, _, backend = contestant.partition(" over ")
    leaves = [
        torch.ones(shape, requires_grad=True) for _ in range(size if call == "alltoall" else 1)
    ]
    gradients = [
        torch.full(shape, rank + 1.0)
        for _ in range(size if call in ("allgather", "alltoall") else 1)
    ]
    if call == "send, recv" and rank == 0:
        gradients = [torch.zeros(())]
    if who == "loop":
        return loop(Hand(by_hand[backend], call), leaves, gradients, expected(call))
    forward = {
        "ours": lambda: our_forward(ours[backend], call),
        "ours, ledger on": lambda: our_forward(ours[backend], call),
        "autograd": lambda: bare(Hand(by_hand[backend], call), call),
        "collective": lambda: bare(Collective(by_hand[backend], call), call),
        "torch": lambda: torch_forward(call),
    }[who]()

    def step():
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(forward(leaves), gradients)

    def check():
        # a rank that only receives expects no gradient
        for leaf, value in zip(leaves, expected(call), strict=False):
            assert leaf.grad.eq(value).all(), (
                f"{contestant}: gradient {leaf.grad.flatten()[0]} where {value} is right"
            )

    return step, check, ledger.Ledger if who == "ours, ledger on" else None


def loop(calls, leaves, gradients, values):
    """The messages alone, without autograd."""
    inputs, last = [leaf.detach() for leaf in leaves], []

    def step():
        calls.forward(inputs)
        last[:] = calls.backward(gradients)

    def check():
        for gradient, value in zip(last, values, strict=False):  # as above
            assert gradient.eq(value).all()

    return step, check, None


def bare(calls, call):
    """The call as an autograd node around the messages by hand."""
    # who has no input of its own needs a leaf, or autograd would not come back
    anchor = torch.zeros((), requires_grad=True)
    if rank == 1 and call == "send, recv":
        return lambda leaves: Bare.apply(calls, anchor)
    return lambda leaves: Bare.apply(calls, *leaves)


def our_forward(c, call):
    """A program of our functions, as a user writes it."""
    if call == "send, recv":
        return (
            (lambda leaves: (functions.send(leaves[0], c, 1),))
            if rank == 0
            else lambda leaves: (functions.recv(c, 0),)
        )
    return {
        "bcast": lambda leaves: (functions.bcast(c, leaves[0] if rank == 0 else None),),
        "allgather": lambda leaves: functions.allgather(c, leaves[0]),
        "alltoall": lambda leaves: functions.alltoall(c, leaves),
    }[call]


def torch_forward(call):
    """The call of torch.distributed.nn.functional.

    It has no send and recv, and every rank gives a tensor of the right shape.
    """
    return {
        "bcast": lambda leaves: (torch_functions.broadcast(leaves[0], 0),),
        "allgather": lambda leaves: torch_functions.all_gather(leaves[0]),
        "alltoall": lambda leaves: torch_functions.all_to_all(
            [torch.empty_like(leaf) for leaf in leaves], leaves
        ),
    }[call]


turns.serve(rank, make, MPI.COMM_WORLD.Barrier)

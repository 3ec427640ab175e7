"""The ranks of the real ChainerMN: the steps that benchmarks/communication.py hands out.

Runs in ChainerMN's own environment.
"""

import chainer
import chainermn
import chainermn.functions as F
import numpy as np
import turns

chainer.disable_experimental_feature_warning = True
comm = chainermn.create_communicator("naive")  # the one for CPUs
PEER = 1 - comm.rank


def leaf(shape, value=1.0):
    """A variable of this shape, all of one value."""
    return chainer.Variable(np.full(shape, value, np.float32))


def expect(variable, value):
    """Raise AssertionError unless the variable's gradient has this value everywhere."""
    if not (variable.grad == np.float32(value)).all():
        raise AssertionError(f"gradient {variable.grad.flat[0]} where {value} is right")


def backward(outputs, gradient):
    """Go backward from all outputs, each with this gradient."""
    for output in outputs:
        output.grad = gradient
    chainer.backward(outputs)


def make(contestant, call, shape):
    """(step, check, None) of a call with tensors of this shape.

    ChainerMN is the only contestant.
    """
    return *{"send, recv": send_recv, "bcast": bcast, "allgather": allgather, "alltoall": alltoall}[
        call
    ](shape), None


def send_recv(shape):
    """The step and the check of a message from rank 0 to rank 1 and its gradient back."""
    x, gradient = leaf(shape), np.full(shape, 2, np.float32)

    def sender():
        x.cleargrad()
        F.send(x, comm, 1).backward()

    def receiver():
        backward([F.recv(comm, 0)], gradient)

    return (sender, lambda: expect(x, 2)) if comm.rank == 0 else (receiver, lambda: None)


def bcast(shape):
    """The step and the check of a broadcast from rank 0, forward and backward."""
    x, gradient = leaf(shape), np.full(shape, comm.rank + 1, np.float32)

    def step():
        x.cleargrad()
        backward([F.bcast(comm, x) if comm.rank == 0 else F.bcast(comm, None)], gradient)

    return step, lambda: comm.rank == 0 and expect(x, 3)


def allgather(shape):
    """The step and the check of an all-gather, forward and backward."""
    x, gradient = leaf(shape), np.full(shape, comm.rank + 1, np.float32)

    def step():
        x.cleargrad()
        backward(F.allgather(comm, x), gradient)

    return step, lambda: expect(x, 3)


def alltoall(shape):
    """The step and the check of an all-to-all, forward and backward."""
    xs, gradient = [leaf(shape), leaf(shape)], np.full(shape, comm.rank + 1, np.float32)

    def step():
        for x in xs:
            x.cleargrad()
        backward(F.alltoall(comm, xs), gradient)

    return step, lambda: [expect(x, rank + 1) for rank, x in enumerate(xs)]


turns.serve(comm.rank, make, comm.mpi_comm.Barrier)

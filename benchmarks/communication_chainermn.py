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
    return chainer.Variable(np.full(shape, value, np.float32))


def expect(variable, value):
    if not (variable.grad == np.float32(value)).all():
        raise AssertionError(f"gradient {variable.grad.flat[0]} where {value} is right")


def backward(outputs, gradient):
    for output in outputs:
        output.grad = gradient
    chainer.backward(outputs)


def make(contestant, call, shape):
    return *{"send, recv": send_recv, "bcast": bcast, "allgather": allgather, "alltoall": alltoall}[
        call
    ](shape), None


def send_recv(shape):
    x, gradient = leaf(shape), np.full(shape, 2, np.float32)

    def sender():
        x.cleargrad()
        F.send(x, comm, 1).backward()

    def receiver():
        backward([F.recv(comm, 0)], gradient)

    return (sender, lambda: expect(x, 2)) if comm.rank == 0 else (receiver, lambda: None)


def bcast(shape):
    x, gradient = leaf(shape), np.full(shape, comm.rank + 1, np.float32)

    def step():
        x.cleargrad()
        backward([F.bcast(comm, x) if comm.rank == 0 else F.bcast(comm, None)], gradient)

    return step, lambda: comm.rank == 0 and expect(x, 3)


def allgather(shape):
    x, gradient = leaf(shape), np.full(shape, comm.rank + 1, np.float32)

    def step():
        x.cleargrad()
        backward(F.allgather(comm, x), gradient)

    return step, lambda: expect(x, 3)


def alltoall(shape):
    xs, gradient = [leaf(shape), leaf(shape)], np.full(shape, comm.rank + 1, np.float32)

    def step():
        for x in xs:
            x.cleargrad()
        backward(F.alltoall(comm, xs), gradient)

    return step, lambda: [expect(x, rank + 1) for rank, x in enumerate(xs)]


turns.serve(comm.rank, make, comm.mpi_comm.Barrier)

"""The same messages written by hand, for two ranks: what our functions are measured against.

Each payload goes after a header with its shape, forward and backward, as in ChainerMN; what arrives
goes into a new tensor of that shape. `Mpi` and `Gloo` carry messages. "hand" is the sum of the two
messages that a call consists of; "collective" asks the backend's own collective instead. Both are
measured inside an autograd function that does nothing else, and in a loop without autograd.
"""

import numpy as np
import torch

WORDS = 8  # of a header: dtype, number of dimensions, shape
FLOAT32 = 6


class Mpi:
    """mpi4py on the tensor's own memory: blocking calls."""

    def __init__(self, comm):
        self.comm, self.rank, self.peer = comm, comm.rank, 1 - comm.rank
        self.mine, self.theirs, self.all = (
            np.zeros(WORDS, np.int64),
            np.zeros(WORDS, np.int64),
            np.zeros((2, WORDS), np.int64),
        )

    def header(self, tensor):
        """This rank's header, filled with the dtype and shape of a tensor."""
        self.mine[0], self.mine[1] = FLOAT32, tensor.dim()
        self.mine[2 : 2 + tensor.dim()] = tensor.shape
        return self.mine

    @staticmethod
    def new(header):
        """An empty tensor of the shape that a header has."""
        return torch.empty(header[2 : 2 + header[1]].tolist())

    def send(self, tensor):
        """Send a tensor to the other rank, after its header."""
        self.comm.Send(self.header(tensor), self.peer)
        self.comm.Send(tensor.numpy(), self.peer)

    def recv(self):
        """Receive a tensor from the other rank, after its header."""
        self.comm.Recv(self.theirs, self.peer)
        tensor = self.new(self.theirs)
        self.comm.Recv(tensor.numpy(), self.peer)
        return tensor

    def exchange(self, tensor):
        """Send a tensor to the other rank while its tensor is received."""
        self.comm.Sendrecv(self.header(tensor), self.peer, 0, self.theirs, self.peer, 0)
        received = self.new(self.theirs)
        self.comm.Sendrecv(tensor.numpy(), self.peer, 0, received.numpy(), self.peer, 0)
        return received

    def bcast(self, tensor):
        """Rank 0's tensor on both ranks."""
        if self.rank == 0:
            self.comm.Bcast(self.header(tensor))
        else:
            self.comm.Bcast(self.theirs)
            tensor = self.new(self.theirs)
        self.comm.Bcast(tensor.numpy())
        return tensor

    def reduce(self, tensor):
        """The sum of both tensors on rank 0, None on rank 1."""
        self.comm.Gather(self.header(tensor), self.all if self.rank == 0 else None)
        total = torch.empty_like(tensor) if self.rank == 0 else None
        self.comm.Reduce(tensor.numpy(), None if total is None else total.numpy())
        return total

    def allgather(self, tensor):
        """Both ranks' tensors, one above the other."""
        self.comm.Allgather(self.header(tensor), self.all)
        gathered = torch.empty((2, *tensor.shape))
        self.comm.Allgather(tensor.numpy(), gathered.numpy())
        return gathered

    def reduce_scatter(self, stacked):
        """This rank's part of the sum of both ranks' stacked tensors."""
        self.comm.Allgather(self.header(stacked), self.all)
        total = torch.empty(stacked.shape[1:])
        self.comm.Reduce_scatter_block(stacked.numpy(), total.numpy())
        return total

    def alltoall(self, stacked):
        """The parts for this rank of both ranks' stacked tensors."""
        self.comm.Allgather(self.header(stacked), self.all)
        received = torch.empty_like(stacked)
        self.comm.Alltoall(stacked.numpy(), received.numpy())
        return received


class Gloo:
    """ProcessGroupGloo's own calls, without the checks of torch.distributed around them."""

    def __init__(self, group, rank):
        self.group, self.rank, self.peer = group, rank, 1 - rank
        self.mine, self.theirs = (
            torch.zeros(WORDS, dtype=torch.int64),
            torch.zeros(WORDS, dtype=torch.int64),
        )
        self.all = [torch.zeros(WORDS, dtype=torch.int64) for _ in range(2)]

    def header(self, tensor):
        """This rank's header, filled with the dtype and shape of a tensor."""
        words = self.mine.numpy()
        words[0], words[1] = FLOAT32, tensor.dim()
        words[2 : 2 + tensor.dim()] = tensor.shape
        return self.mine

    new = staticmethod(lambda header: Mpi.new(header.numpy()))

    def send(self, tensor):
        """Send a tensor to the other rank, after its header."""
        self.group.send([self.header(tensor)], self.peer, 0).wait()
        self.group.send([tensor], self.peer, 0).wait()

    def recv(self):
        """Receive a tensor from the other rank, after its header."""
        self.group.recv([self.theirs], self.peer, 0).wait()
        tensor = self.new(self.theirs)
        self.group.recv([tensor], self.peer, 0).wait()
        return tensor

    def exchange(self, tensor):
        """Send a tensor to the other rank while its tensor is received."""
        self._both(self.header(tensor), self.theirs)
        received = self.new(self.theirs)
        self._both(tensor, received)
        return received

    def _both(self, sent, received):
        receiving = self.group.recv([received], self.peer, 0)
        self.group.send([sent], self.peer, 0).wait()
        receiving.wait()

    def bcast(self, tensor):
        """Rank 0's tensor on both ranks."""
        if self.rank == 0:
            self.group.broadcast(self.header(tensor), 0).wait()
        else:
            self.group.broadcast(self.theirs, 0).wait()
            tensor = self.new(self.theirs)
        self.group.broadcast(tensor, 0).wait()
        return tensor

    def reduce(self, tensor):
        """The sum of both tensors on rank 0, None on rank 1."""
        self._gather_headers(tensor)
        total = tensor.clone()  # gloo sums in place
        self.group.reduce(total, 0).wait()
        return total if self.rank == 0 else None

    def _gather_headers(self, tensor):
        self.group.allgather([self.all], [self.header(tensor)]).wait()

    def allgather(self, tensor):
        """The list of both ranks' tensors."""
        self._gather_headers(tensor)
        gathered = [torch.empty_like(tensor) for _ in range(2)]
        self.group.allgather([gathered], [tensor]).wait()
        return gathered

    def reduce_scatter(self, stacked):
        """This rank's part of the sum of both ranks' stacked tensors, by an all-to-all."""
        return self.alltoall(stacked).sum(0)

    def alltoall(self, stacked):
        """The parts for this rank of both ranks' stacked tensors."""
        self._gather_headers(stacked)
        received = torch.empty_like(stacked)
        self.group.alltoall_base(received, stacked, [], []).wait()
        return received


class Hand:
    """The calls as messages from one rank to the other.

    forward(inputs) gives outputs; backward(gradients) the gradients of the inputs.
    """

    def __init__(self, messages, call):
        self.messages, self.rank, self.peer = messages, messages.rank, messages.peer
        self.forward, self.backward = {
            "send, recv": (self.send, self.take) if self.rank == 0 else (self.take, self.send),
            "bcast": (self.bcast, self.bcast_back),
            "allgather": (self.allgather, self.allgather_back),
            "alltoall": (self.alltoall, self.alltoall),
        }[call]

    def send(self, tensors):
        """Send the tensor; the output is a zero, like our delegate."""
        self.messages.send(tensors[0])
        return (torch.zeros(()),)

    def take(self, _):
        """Receive a tensor."""
        return (self.messages.recv(),)

    def bcast(self, tensors):
        """Rank 0 sends its tensor, rank 1 receives it."""
        if self.rank:
            return self.take(None)
        self.messages.send(tensors[0])
        return tuple(tensors)

    def bcast_back(self, gradients):
        """Rank 0 adds the gradient that rank 1 sends to its own."""
        if self.rank == 0:
            return (self.messages.recv().add_(gradients[0]),)
        self.messages.send(gradients[0])
        return (None,)

    def allgather(self, tensors):
        """Both tensors on both ranks, by one exchange."""
        received = self.messages.exchange(tensors[0])
        return (tensors[0], received) if self.rank == 0 else (received, tensors[0])

    def allgather_back(self, gradients):
        """The sum of both ranks' gradients of this rank's tensor, by one exchange."""
        return (self.messages.exchange(gradients[self.peer]).add_(gradients[self.rank]),)

    def alltoall(self, tensors):
        """The tensors for this rank, by one exchange."""
        received = self.messages.exchange(tensors[self.peer])
        return (tensors[0], received) if self.rank == 0 else (received, tensors[1])


class Collective(Hand):
    """The calls as collectives of the backend, for shapes that are equal on all ranks."""

    def bcast(self, tensors):
        """Rank 0's tensor on both ranks, by a broadcast."""
        return (self.messages.bcast(tensors[0]),)

    def bcast_back(self, gradients):
        """The sum of the gradients on rank 0, by a reduce."""
        return (self.messages.reduce(gradients[0]),)

    def allgather(self, tensors):
        """Both tensors on both ranks, by an all-gather."""
        return tuple(self.messages.allgather(tensors[0]))

    def allgather_back(self, gradients):
        """The sum of the gradients of this rank's tensor, by a reduce-scatter."""
        return (self.messages.reduce_scatter(torch.stack(gradients)),)

    def alltoall(self, tensors):
        """The tensors for this rank, by an all-to-all."""
        return self.messages.alltoall(torch.stack(tensors)).unbind()


class Bare(torch.autograd.Function):
    """Autograd around the messages, and nothing else."""

    @staticmethod
    def forward(ctx, calls, *inputs):
        """The outputs of `calls`, which get the inputs without their graph."""
        ctx.calls = calls
        return calls.forward([x.detach() for x in inputs])

    @staticmethod
    def backward(ctx, *gradients):
        """The gradients of the inputs, from `calls`."""
        return None, *ctx.calls.backward(gradients)

"""A communicator: some ranks, in an order, that talk to each other without meeting anybody else's messages."""

import itertools
import pickle

import torch

from manyhands.comm.calls import Calls


class Communicator(Calls):
    """Made by `create_communicator` or `split`. Its calls without gradients are here; those with gradients in `manyhands.functions`.

    `rank`, `size`: this rank and the number of ranks. `intra_rank`, `intra_size`: the same among the ranks of this node; `inter_rank`, `inter_size`:
    the node's number, and the number of nodes. `device`: where received tensors go that came from a GPU. `timeout_s`: how long a call waits.
    Collective calls must be made by all ranks of the communicator, in the same order.
    """

    def __init__(self, exchange, name, members, nodes, device, timeout_s):
        self._exchange, self.name, self.members, self._nodes = exchange, name, members, nodes
        self.device, self.timeout_s = device, timeout_s
        self.rank, self.size = members.index(exchange.rank), len(members)
        self.others = [(self.rank + i) % self.size for i in range(1, self.size)]  # beginning with the next one: so that not all send to rank 0 first
        self._closed, self.epoch, self._calls = False, 0, 0  # collective calls are numbered, anew in each epoch; an epoch ends with an error
        self.spoiled = set()  # places of calls in which some rank could not do its part: what comes for them is dropped
        self.stopped, self.last_call = None, None  # (number of a call that failed elsewhere, the epoch after it, why it is to raise here or None); the Wait of the last collective call
        self._splits, self._operations, self._group = itertools.count(), itertools.count(), None
        mine = nodes[exchange.rank]
        here, order = [m for m in members if nodes[m] == mine], list(dict.fromkeys(nodes[m] for m in members))
        self.intra_rank, self.intra_size = here.index(exchange.rank), len(here)
        self.inter_rank, self.inter_size = order.index(mine), len(order)
        exchange.control.communicators[name] = self

    def __repr__(self):
        return f"<communicator {self.name!r}: rank {self.rank} of {self.size}, {self.backend}>"

    @property
    def backend(self):
        return self._exchange.wire.name

    def name_of(self, member):
        """The rank in this communicator of a global rank."""
        return self.members.index(member)

    def split(self, color, key=0):
        """Cut the communicator: ranks with the same `color` get one together, ordered by `key`, then by rank. Collective.

        A rank whose color is None gets None. The parts share the connections of the whole.
        """
        wanted = self.allgather_obj((color, key))
        name = f"{self.name}/{next(self._splits)}.{color}"
        if color is None:
            return None
        chosen = sorted((key, rank) for rank, (other, key) in enumerate(wanted) if other == color)
        return Communicator(self._exchange, name, [self.members[rank] for _, rank in chosen], self._nodes, self.device, self.timeout_s)

    @property
    def process_group(self):
        """A `torch.distributed` group of the same ranks, for DistributedDataParallel. Collective when first used.

        If torch.distributed is not initialised yet, this does it: then all ranks of the world must come by, each with its own communicator.
        """
        if self._group is None:
            from manyhands.comm.start import process_group

            self._group = process_group(self)
        return self._group

    # --- messages from one rank to one other -----------------------------------------------------------------------------

    def send_obj(self, obj, dest, tag=0):
        """Send any Python object; the other rank calls `recv_obj`."""
        self.post(dest, tag, "send_obj", [_pickled(obj)], self.next_operation())

    def recv_obj(self, source, tag=0):
        """Receive what `send_obj` has sent."""
        return _unpickled(self.take(source, tag, "recv_obj").tensors[0])

    # --- calls of all ranks ----------------------------------------------------------------------------------------------

    def bcast_obj(self, obj, root=0):
        """The root's object on all ranks."""
        self.check_rank(root, "bcast_obj", "root")
        place = self.next_call()
        tensors, _ = self.bcast_tensors(place, "bcast_obj", [_pickled(obj)] if self.rank == root else None, root)
        return obj if self.rank == root else _unpickled(tensors[0])

    def gather_obj(self, obj, root=0):
        """At the root the list of all ranks' objects, None elsewhere."""
        self.check_rank(root, "gather_obj", "root")
        at_root = self.rank == root
        came = self.exchange(self.next_call(), "gather_obj", {} if at_root else {root: [_pickled(obj)]}, self.others if at_root else [], root=root)
        return [obj if rank == root else _unpickled(came[rank].tensors[0]) for rank in range(self.size)] if at_root else None

    def allgather_obj(self, obj):
        """The list of all ranks' objects, on all ranks."""
        mine = [_pickled(obj)]
        came = self.exchange(self.next_call(), "allgather_obj", {rank: mine for rank in self.others}, self.others)
        return [obj if rank == self.rank else _unpickled(came[rank].tensors[0]) for rank in range(self.size)]

    def scatter_obj(self, objs, root=0):
        """This rank's item of the root's list, which has one for each rank; other ranks' `objs` is not looked at."""
        self.check_rank(root, "scatter_obj", "root")
        place = self.next_call()
        if self.rank != root:
            return _unpickled(self.exchange(place, "scatter_obj", {}, [root], root=root)[root].tensors[0])
        if len(objs) != self.size:
            error = ValueError(f"scatter_obj: the root has {len(objs)} objects for {self.size} ranks.")
            self.spoil(place, "scatter_obj", error)
            raise error
        self.exchange(place, "scatter_obj", {rank: [_pickled(objs[rank])] for rank in self.others}, [], root=root)
        return objs[root]

    def allreduce_obj(self, obj):
        """The sum (`+`) of all ranks' objects, in the order of ranks, on all ranks."""
        first, *rest = self.allgather_obj(obj)
        for other in rest:
            first = first + other
        return first

    def barrier(self):
        """Returns when all ranks have called it. What they sent before is here then: if it shows an error of an earlier call, that is raised."""
        self.exchange(self.next_call(), "barrier", {rank: [] for rank in self.others}, self.others)
        self.enter()

    def allreduce(self, tensor):
        """A new tensor: the sum over all ranks, the same to the last bit on all of them. Shapes and dtypes must agree. No gradient."""
        return self.sum_tensors(self.next_call(), "allreduce", tensor)

    def bcast_data(self, module):
        """Give every rank the parameters and buffers of rank 0's module, in place."""
        with torch.no_grad():
            for tensor in [*module.parameters(), *module.buffers()]:
                (value,), _ = self.bcast_tensors(self.next_call(), "bcast_data", [tensor])
                if self.rank:
                    tensor.copy_(value)

    def multi_node_mean_grad(self, module):
        """Replace all gradients of the module by their mean over the ranks; a gradient that is None counts as zeros."""
        for parameter in module.parameters():
            if parameter.requires_grad:
                grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = self.allreduce(grad) / self.size

    # --- the end ---------------------------------------------------------------------------------------------------------

    def close(self):
        """Say goodbye to the others and leave; done by itself when the process ends. Closing a part of a split closes only that part."""
        self._closed = True
        if self.name == "world":
            self._exchange.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _pickled(obj):
    return torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)


def _unpickled(tensor):
    return pickle.loads(tensor.numpy().tobytes())

"""A communicator: some ranks, in an order, that talk to each other without meeting anybody else's messages."""

import itertools
import pickle

import torch

from manyhands.comm.control import CommunicationError, Wait
from manyhands.comm.message import DTYPES, NUMBER, describe


class Communicator:
    """Made by `create_communicator` or `split`. Its calls without gradients are here; those with gradients in `manyhands.functions`.

    `rank`, `size`: this rank and the number of ranks. `intra_rank`, `intra_size`: the same among the ranks of this node; `inter_rank`, `inter_size`:
    the node's number, and the number of nodes. `device`: where received tensors go that came from a GPU. `timeout_s`: how long a call waits.
    Collective calls must be made by all ranks of the communicator, in the same order.
    """

    def __init__(self, exchange, name, members, nodes, device, timeout_s):
        self._exchange, self.name, self.members, self._nodes = exchange, name, members, nodes
        self.device, self.timeout_s = device, timeout_s
        self.rank, self.size = members.index(exchange.rank), len(members)
        self.epoch, self._calls = 0, 0  # collective calls are numbered, anew in each epoch; an epoch ends with an error
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
        """A `torch.distributed` group of the same ranks, for DistributedDataParallel. Collective when first used; ranks are the same."""
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

    def next_operation(self):
        """A name for a message of this rank, unlike any other."""
        return self._exchange.rank, self.name, next(self._operations)

    def post(self, rank, tag, call, tensors, op, **facts):
        """Send tensors to `rank` of this communicator under a tag; `op` is the operation's name."""
        peer = self.peer(rank, call)
        check_tag(tag)
        self.enter()
        facts = {"tag": tag, "id": op, "op": op, **facts}
        self._exchange.post(peer, ("p2p", self.name, tag), call, tensors, facts, Wait("p2p", self, call, facts))

    def take(self, rank, tag, call):
        """The next message from `rank` of this communicator under a tag."""
        peer = self.peer(rank, call)
        check_tag(tag)
        self.enter()
        message = self._exchange.take(peer, ("p2p", self.name, tag), Wait("p2p", self, call, {"tag": tag}))
        sent_by = {"recv": "send", "recv_obj": "send_obj"}[call]
        if message.call != sent_by:
            text = f"Rank {self.rank} called {call}, but rank {rank} sent {message}: {sent_by} goes with {call}."
            self._exchange.control._say(peer, "refused", {"op": message.facts["op"], "text": text})
            raise CommunicationError(text)
        return message

    def peer(self, rank, call):
        """The global rank of `rank`. ValueError if it is out of range, or this rank itself."""
        self.check_rank(rank, call)
        if rank == self.rank:
            raise ValueError(f"{call}: rank {rank} is this rank itself; a rank keeps what it has in a variable.")
        return self.members[rank]

    def check_rank(self, rank, call, word="rank"):
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.size:
            raise ValueError(f"{call}: {word} {rank!r} is not in communicator {self.name!r}, whose ranks are 0 to {self.size - 1}.")

    # --- calls of all ranks ----------------------------------------------------------------------------------------------

    def enter(self):
        """What every call does first."""
        control = self._exchange.control
        if self._exchange.closed:
            raise ValueError(f"Communicator {self.name!r} is closed.")
        if control.pending is not None:
            error, control.pending = control.pending, None
            raise error

    def next_call(self):
        """The place of the next collective call: (epoch, number). The same on all ranks that make the same calls."""
        self.enter()
        self._exchange.pump()  # an error elsewhere may have begun a new epoch
        self._calls += 1
        return self.epoch, self._calls

    def begin_epoch(self, epoch):
        """After an error in a collective call: count anew, and forget what was sent in the old epoch."""
        self.epoch, self._calls = epoch, 0
        inbox = self._exchange.inbox
        for key, source in [k for k in inbox if k[0][:2] == ("collective", self.name) and k[0][2][0] < epoch]:
            del inbox[key, source]

    def exchange(self, place, call, outgoing, sources, step=0, root=None, check=None, **facts):
        """One step of a collective call: send `outgoing` {rank: tensors}, then return {rank: message} from `sources`, in their order.

        `check(message)`, if given, returns what is wrong with a message, or None.
        """
        facts = {**facts, "step": step, **({} if root is None else {"root": root})}
        key, exchange = ("collective", self.name, place, step), self._exchange
        wait = Wait("collective", self, call, facts)
        exchange.post_all([(self.members[rank], key, call, tensors, {**facts, "id": (exchange.rank, self.name, *place, step)})
                           for rank, tensors in outgoing.items()], wait)
        came = {}
        for rank in sources:
            message = exchange.take(self.members[rank], key, wait)
            wrong = self._conflict(message, call, root, rank) or (check and check(message))
            if wrong:
                wait.peer = self.members[rank]
                raise exchange.control.fail(wait, f"Rank {self.rank} is in {wait}: {wrong}")
            came[rank] = message
        return came

    def _conflict(self, message, call, root, rank):
        if "error" in message.facts:
            return f"rank {rank} reports: {message.facts['error']}"
        if message.call != call:
            return f"rank {rank} called {message.call} in its place, with {describe(message.tensors)}. All ranks must make the same calls in the same order."
        if message.facts.get("root") != root:
            return f"rank {rank} has root {message.facts.get('root')}, this rank has root {root}."
        return None

    def spoil(self, place, call, error, step=0):
        """This rank cannot do its part: take part in the call with the error, so that nobody waits for it."""
        facts = {"error": str(error), "id": (self._exchange.rank, self.name, *place, step)}
        for member in self.members:
            if member != self._exchange.rank:
                self._exchange.notify(member, ("collective", self.name, place, step), call, **facts)

    def others(self):
        """The other ranks, beginning with the next one: so that not all send to rank 0 first."""
        return [(self.rank + i) % self.size for i in range(1, self.size)]

    def bcast_tensors(self, place, call, tensors, root=0, **facts):
        """The root's tensors on all ranks, along a binomial tree: ceil(log2 size) steps. Returns the message's tensors and facts."""
        virtual, parent, children = (self.rank - root) % self.size, None, []
        reach = 1
        while reach < self.size:
            if virtual < reach and virtual + reach < self.size:
                children.append((virtual + reach + root) % self.size)
            elif reach <= virtual < 2 * reach:
                parent = (virtual - reach + root) % self.size
            reach *= 2
        if parent is not None:
            message = self.exchange(place, call, {}, [parent], root=root)[parent]
            tensors, facts = message.tensors, {name: value for name, value in message.facts.items() if name not in ("id", "root", "step")}
        self.exchange(place, call, {child: tensors for child in children}, [], root=root, **facts)
        return tensors, facts

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
        came = self.exchange(self.next_call(), "gather_obj", {} if at_root else {root: [_pickled(obj)]}, self.others() if at_root else [], root=root)
        return [obj if rank == root else _unpickled(came[rank].tensors[0]) for rank in range(self.size)] if at_root else None

    def allgather_obj(self, obj):
        """The list of all ranks' objects, on all ranks."""
        mine = [_pickled(obj)]
        came = self.exchange(self.next_call(), "allgather_obj", {rank: mine for rank in self.others()}, self.others())
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
        self.exchange(place, "scatter_obj", {rank: [_pickled(objs[rank])] for rank in self.others()}, [], root=root)
        return objs[root]

    def allreduce_obj(self, obj):
        """The sum (`+`) of all ranks' objects, in the order of ranks, on all ranks."""
        first, *rest = self.allgather_obj(obj)
        for other in rest:
            first = first + other
        return first

    def barrier(self):
        """Returns when all ranks have called it."""
        self.exchange(self.next_call(), "barrier", {rank: [] for rank in self.others()}, self.others())

    def allreduce(self, tensor):
        """A new tensor: the sum over all ranks, the same to the last bit on all of them. Shapes and dtypes must agree. No gradient."""
        return self.sum_tensors(self.next_call(), "allreduce", tensor)

    def sum_tensors(self, place, call, tensor, step=0):
        """Reduce-scatter, then all-gather: 2 (size - 1) / size of the tensor's bytes leave each rank."""
        if self.size == 1:
            return tensor.detach().clone()
        chunks = list(tensor.detach().reshape(-1).tensor_split(self.size))
        like = (NUMBER[tensor.dtype], tuple(tensor.shape))

        def check(message):
            if message.facts["like"] == like:
                return None
            there = torch.empty(message.facts["like"][1], dtype=DTYPES[message.facts["like"][0]], device="meta")
            return f"its tensor is {describe([tensor])}, that of rank {self.name_of(message.source)} is {describe([there])}. They cannot be added."

        came = self.exchange(place, call, {rank: [chunks[rank]] for rank in self.others()}, self.others(), step, check=check, like=like)
        parts = [chunks[rank] if rank == self.rank else came[rank].tensors[0].to(tensor.device) for rank in range(self.size)]
        total = sum(parts[1:], parts[0])
        came = self.exchange(place, call, {rank: [total] for rank in self.others()}, self.others(), step + 1)
        return torch.cat([total if rank == self.rank else came[rank].tensors[0].to(tensor.device) for rank in range(self.size)]).view(tensor.shape)

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
        """Say goodbye to the others and leave; done by itself when the process ends. The parts of a split close with the whole."""
        self._exchange.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def check_tag(tag):
    if isinstance(tag, bool) or not isinstance(tag, int) or tag < 0:
        raise ValueError(f"A tag is a whole number from 0 on, not {tag!r}.")


def _pickled(obj):
    return torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)


def _unpickled(tensor):
    return pickle.loads(tensor.numpy().tobytes())

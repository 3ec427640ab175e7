"""A communicator: some ranks, in an order, whose messages never meet those of others."""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import torch

from manyhands.comm.calls import Calls
from manyhands.comm.control import CommunicationError
from manyhands.comm.message import check_tensor, describe
from manyhands.comm.store import make_process_group

if TYPE_CHECKING:
    import torch.distributed as dist
    from torch import nn

    from manyhands.comm.message_queue import Exchange


class Communicator(Calls):
    """Made by `create_communicator` or `split`.

    Its calls without gradients are here; those with gradients in `manyhands.functions`.

    `rank`, `size`: this rank and the number of ranks. `intra_rank`, `intra_size`: the same among
    the ranks of this node; `inter_rank`, `inter_size`: the node's number, and the number of nodes.
    `device`: where received tensors go that came from a GPU. `timeout_s`: how long a call waits.
    Collective calls must be made by all ranks of the communicator, in the same order.
    """

    def __init__(
        self,
        exchange: Exchange,
        name: str,
        members: list[int],
        nodes: Sequence[str],
        device: torch.device,
        timeout_s: float,
    ) -> None:
        self._exchange, self.name, self.members, self._nodes = exchange, name, members, nodes
        self.device, self.timeout_s = device, timeout_s
        self.rank, self.size = members.index(exchange.rank), len(members)
        # beginning with the next one: so that not all send to rank 0 first
        self.others = [(self.rank + i) % self.size for i in range(1, self.size)]
        # collective calls are numbered, anew in each epoch; an epoch ends with an error
        self._closed, self.epoch, self._calls = False, 0, 0
        # slots of calls in which some rank could not do its part: what comes for them is dropped
        self.spoiled = set()
        # (number of a call that failed elsewhere, the epoch after it, why it is to raise here or
        # None); the Wait of the last collective call
        self.stopped, self.last_call = None, None
        self._splits, self._operations = itertools.count(), itertools.count()
        self._group: dist.ProcessGroup | None = None
        mine = nodes[exchange.rank]
        here, order = (
            [m for m in members if nodes[m] == mine],
            list(dict.fromkeys(nodes[m] for m in members)),
        )
        self.intra_rank, self.intra_size = here.index(exchange.rank), len(here)
        self.inter_rank, self.inter_size = order.index(mine), len(order)
        exchange.control.communicators[name] = self

    def __repr__(self) -> str:
        return f"<communicator {self.name!r}: rank {self.rank} of {self.size}, {self.backend}>"

    @property
    def backend(self) -> str:
        """What carries the messages: "gloo", "mpi" or "nccl"."""
        return self._exchange.wire.name

    @overload
    def split(self, color: None, key: Any = 0) -> None: ...

    @overload
    def split(self, color: int | str, key: Any = 0) -> Communicator: ...

    def split(self, color: int | str | None, key: Any = 0) -> Communicator | None:
        """Cut the communicator into parts, one for each `color`. Collective.

        The ranks with the same `color` get one together, ordered by `key`, then by rank.

        A rank whose color is None gets None. The parts share the connections of the whole.
        """
        wanted = self.allgather_obj((color, key))
        name = f"{self.name}/{next(self._splits)}.{color}"
        if color is None:
            return None
        chosen = sorted((key, rank) for rank, (other, key) in enumerate(wanted) if other == color)
        return Communicator(
            self._exchange,
            name,
            [self.members[rank] for _, rank in chosen],
            self._nodes,
            self.device,
            self.timeout_s,
        )

    @property
    def process_group(self) -> dist.ProcessGroup:
        """A `torch.distributed` group of the same ranks, for DistributedDataParallel.

        Collective when first used.

        If torch.distributed is not initialised yet, this does it: then all ranks of the world must
        come by, each with its own communicator.
        """
        if self._group is None:
            self._group = make_process_group(self)
        return self._group

    # --- messages from one rank to one other ------------------------------------------------------

    def send_obj(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send any Python object; the other rank calls `recv_obj`."""
        self.post(dest, tag, "send_obj", [_pickled(obj)], self.next_operation())

    def recv_obj(self, source: int, tag: int = 0) -> Any:
        """Receive what `send_obj` has sent."""
        return _unpickled(self.take(source, tag, "recv_obj").tensors[0])

    # --- calls of all ranks -----------------------------------------------------------------------

    def bcast_obj(self, obj: Any, root: int = 0) -> Any:
        """The root's object on all ranks."""
        root, slot = self.check_rank(root, "bcast_obj", "root"), self.next_call()
        mine = (
            self.run_checked(slot, "bcast_obj", lambda: [_pickled(obj)])
            if self.rank == root
            else None
        )
        tensors, _ = self.bcast_tensors(slot, "bcast_obj", mine, root)
        return obj if self.rank == root else _unpickled(tensors[0])

    def gather_obj(self, obj: Any, root: int = 0) -> list[Any] | None:
        """At the root the list of all ranks' objects, None elsewhere."""
        root, slot = self.check_rank(root, "gather_obj", "root"), self.next_call()
        at_root = self.rank == root
        outgoing = (
            {} if at_root else {root: self.run_checked(slot, "gather_obj", lambda: [_pickled(obj)])}
        )
        came = self.exchange(
            slot, "gather_obj", outgoing, self.others if at_root else [], root=root
        )
        return (
            [
                obj if rank == root else _unpickled(came[rank].tensors[0])
                for rank in range(self.size)
            ]
            if at_root
            else None
        )

    def allgather_obj(self, obj: Any) -> list[Any]:
        """The list of all ranks' objects, on all ranks."""
        slot = self.next_call()
        mine = self.run_checked(slot, "allgather_obj", lambda: [_pickled(obj)])
        came = self.exchange(slot, "allgather_obj", dict.fromkeys(self.others, mine), self.others)
        return [
            obj if rank == self.rank else _unpickled(came[rank].tensors[0])
            for rank in range(self.size)
        ]

    def scatter_obj(self, objs: Sequence[Any] | None, root: int = 0) -> Any:
        """This rank's item of the root's list, which has one for each rank.

        What other ranks give as `objs` is not looked at.
        """
        root, slot = self.check_rank(root, "scatter_obj", "root"), self.next_call()
        if self.rank != root:
            return _unpickled(
                self.exchange(slot, "scatter_obj", {}, [root], root=root)[root].tensors[0]
            )
        items = cast("Sequence[Any]", objs)  # None is for the other ranks

        def outgoing() -> dict[int, list[torch.Tensor]]:
            if len(items) != self.size:
                raise ValueError(
                    f"scatter_obj: the root has {len(items)} objects for {self.size} ranks."
                )
            return {rank: [_pickled(items[rank])] for rank in self.others}

        self.exchange(
            slot, "scatter_obj", self.run_checked(slot, "scatter_obj", outgoing), [], root=root
        )
        return items[root]

    def allreduce_obj(self, obj: Any) -> Any:
        """The sum (`+`) of all ranks' objects, in the order of ranks, on all ranks."""
        first, *rest = self.allgather_obj(obj)
        for other in rest:
            first = first + other
        return first

    def barrier(self) -> None:
        """Returns when all ranks have called it.

        What they sent before is here then: if it shows an error of an earlier call, that is raised.
        """
        self.exchange(self.next_call(), "barrier", {rank: [] for rank in self.others}, self.others)
        self.enter()

    def allreduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """A new tensor: the sum over all ranks, the same to the last bit on all of them.

        Shapes and dtypes must agree. No gradient.
        """
        slot = self.next_call()
        self.run_checked(slot, "allreduce", lambda: check_tensor(tensor, "allreduce"))
        return self.sum_tensors(slot, "allreduce", tensor)

    def bcast_data(self, module: nn.Module) -> None:
        """Give every rank the parameters and buffers of rank 0's module, in place.

        CommunicationError, and nothing copied, where modules differ.
        """
        tensors = [*module.parameters(), *module.buffers()]
        theirs = self.allgather_obj([describe([tensor]) for tensor in tensors])
        for rank, other in enumerate(theirs):
            if other != theirs[0]:
                index = next(
                    i for i, (a, b) in enumerate(itertools.zip_longest(theirs[0], other)) if a != b
                )
                here, there = (
                    [*names, *["nothing"] * (index + 1)][index] for names in (theirs[0], other)
                )
                raise CommunicationError(
                    "bcast_data: the modules differ. Of their parameters and buffers, "
                    f"number {index} is {here} on rank 0 and {there} on rank {rank}. "
                    "Make the same model on all ranks."
                )
        with torch.no_grad():
            for tensor in tensors:
                (value,), _ = self.bcast_tensors(self.next_call(), "bcast_data", [tensor])
                if self.rank:
                    tensor.copy_(value)

    def multi_node_mean_grad(self, module: nn.Module) -> None:
        """Replace all gradients of the module by their mean over the ranks.

        A gradient that is None counts as zeros.
        """
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.grad = self.allreduce(gradient_of(parameter)) / self.size

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Say goodbye to the others and leave; done by itself when the process ends.

        Closing a part of a split closes only that part.
        """
        self._closed = True
        if self.name == "world":
            self._exchange.close()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def gradient_of(p: torch.Tensor) -> torch.Tensor:
    """The gradient as a dense tensor, zeros where there is none."""
    if p.grad is None:
        return torch.zeros_like(p)
    return p.grad.detach().to_dense() if p.grad.layout != torch.strided else p.grad.detach()


class _Pickler(pickle.Pickler):
    """Pickles only the elements of a tensor that is part of a larger one.

    torch would pickle the whole.
    """

    def reducer_override(self, obj: Any) -> Any:
        if (
            type(obj) is torch.Tensor
            and obj.layout is torch.strided
            and obj.untyped_storage().nbytes() > obj.nbytes
        ):
            return (
                obj.detach()
                .clone()
                .requires_grad_(obj.requires_grad)
                .__reduce_ex__(pickle.HIGHEST_PROTOCOL)
            )
        return NotImplemented


def _pickled(obj: object) -> torch.Tensor:
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(obj)
    return torch.frombuffer(bytearray(file.getbuffer()), dtype=torch.uint8)


def _unpickled(tensor: torch.Tensor) -> Any:
    return pickle.loads(tensor.numpy().tobytes())

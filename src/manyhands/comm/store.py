"""Where the ranks find each other.

This is a store of torch.distributed's, and the process groups are made from it.
"""

from __future__ import annotations

import datetime
import os
import socket
from typing import TYPE_CHECKING, Any, cast

import torch.distributed as dist

from manyhands.comm.control import CommunicationError

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator

MPI_STARTED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")  # set by mpirun
# the one that this process has opened, kept for as long as it lives
_stores: list[tuple[dist.Store, int, int]] = []


def open_store(timeout_s: float = 300) -> tuple[dist.Store, int, int]:
    """(store, rank, size): where the ranks find each other."""
    if dist.is_initialized():
        return dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        if not _stores:
            _stores.append(_store_by_environment(timeout_s))
        return _stores[0]
    if any(name in os.environ for name in MPI_STARTED):
        if not _stores:
            _stores.append(_store_by_mpi())
        return _stores[0]
    return dist.HashStore(), 0, 1


def _store_by_environment(timeout_s: float) -> tuple[dist.Store, int, int]:
    """The store of torch's rendezvous "env://", for which rank 0 does not wait for the others.

    `create_communicator` does, and knows who is missing.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    served_by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address, port, limit = (
        os.environ.get("MASTER_ADDR", "localhost"),
        int(os.environ["MASTER_PORT"]),
        datetime.timedelta(seconds=timeout_s),
    )
    try:
        store = dist.TCPStore(
            address,
            port,
            size,
            rank == 0 and not served_by_torchrun,
            limit,
            wait_for_workers=False,
            multi_tenant=True,
        )
    except dist.DistError:
        raise CommunicationError(
            f"create_communicator: rank {rank} found no process at {address}, port {port}, "
            f"within {timeout_s:g} s, because rank 0 did not start."
        ) from None
    store.set_timeout(datetime.timedelta(seconds=300))
    return store, rank, size


def _store_by_mpi() -> tuple[dist.Store, int, int]:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    store = (
        dist.TCPStore("localhost", 0, world.size, is_master=True, wait_for_workers=False)
        if world.rank == 0
        else None
    )
    host, port, name = world.bcast(
        (socket.gethostname(), store.port, socket.gethostname()) if store else None
    )
    if store is None:
        store = dist.TCPStore(
            "localhost" if name == socket.gethostname() else host, port, world.size, is_master=False
        )
    return store, world.rank, world.size


def make_process_group(communicator: Communicator) -> dist.ProcessGroup:
    """The torch.distributed group with the ranks of a communicator."""
    if not dist.is_initialized():
        wire = communicator._exchange.wire
        store, rank, size = open_store()
        dist.init_process_group(
            "nccl" if wire.name == "nccl" else "gloo",
            store=dist.PrefixStore("default", store),
            rank=rank,
            world_size=size,
        )
    if communicator.members == list(range(dist.get_world_size())):
        return cast("dist.ProcessGroup", dist.group.WORLD)
    # `new_group` would number the groups of this process, and wait for ranks that have made another
    # number of them
    c10d = dist.distributed_c10d
    # to torch's checker no str
    name: Any = f"manyhands/{communicator._exchange.number}/{communicator.name}"
    store = dist.PrefixStore(name, c10d._get_default_store())
    made, _ = c10d._new_process_group_helper(
        communicator.size,
        communicator.rank,
        communicator.members,
        c10d.Backend(dist.get_backend()),
        store,
        name,
        timeout=datetime.timedelta(seconds=communicator.timeout_s),
    )
    group = cast("dist.ProcessGroup", made)  # a member of it calls this
    c10d._world.pg_group_ranks[group] = {
        member: rank for rank, member in enumerate(communicator.members)
    }
    return group

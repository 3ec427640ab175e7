"""Find out which rank this process is and how it was started, and connect it with the others."""

from __future__ import annotations

import atexit
import datetime
import os
import socket
import weakref
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from manyhands.comm.communicator import Communicator
from manyhands.comm.control import CommunicationError
from manyhands.comm.message_queue import Exchange
from manyhands.comm.store import MPI_STARTED, open_store

if TYPE_CHECKING:
    from manyhands.comm.wire import Wire

BACKENDS = ("auto", "gloo", "nccl", "mpi")
# taken as "auto"
CHAINERMN = (
    "naive",
    "flat",
    "hierarchical",
    "two_dimensional",
    "single_node",
    "non_cuda_aware",
    "pure_nccl",
)
_open: weakref.WeakSet[Exchange] = weakref.WeakSet()  # closed at the end of the process
_made = 0  # communicators made so far: the same on all ranks


def create_communicator(backend: str = "auto", timeout_s: float = 60.0) -> Communicator:
    """Connect all ranks that were started together.

    Collective.

    "mpi" moves tensors on the CPU through MPI's shared memory; start the program with `mpirun`.
    "gloo" goes through TCP; start it with `torchrun`, `mpirun` or in the course's cluster. "nccl"
    is for ranks with a GPU each. "auto" takes what fits: MPI under mpirun, else NCCL if every rank
    has a GPU of its own, else gloo; ChainerMN's names of communicators mean the same. A process
    that was started alone is rank 0 of 1.

    `timeout_s`: how long a call waits for another rank before it raises `CommunicationError`.
    """
    global _made
    backend = "auto" if backend in CHAINERMN else backend
    if backend not in BACKENDS:
        raise ValueError(f"There is no backend {backend!r}; there are: {', '.join(BACKENDS)}.")
    if (
        isinstance(timeout_s, bool)
        or not isinstance(timeout_s, (int, float))
        or not 0 < timeout_s < float("inf")
    ):
        raise ValueError(f"timeout_s is a number of seconds above 0, not {timeout_s!r}.")
    backend = _choose() if backend == "auto" else backend
    wire = {"mpi": _mpi, "gloo": _gloo, "nccl": _nccl}[backend](timeout_s)
    exchange = Exchange(wire)
    exchange.number, _made = _made, _made + 1
    _open.add(exchange)
    me = Communicator(
        exchange, "world", list(range(wire.size)), ["?"] * wire.size, _device(), timeout_s
    )
    nodes = me.allgather_obj(os.environ.get("GROUP_RANK", "") + "@" + socket.gethostname())
    return Communicator(exchange, "world", list(range(wire.size)), nodes, _device(), timeout_s)


def _choose() -> str:
    if dist.is_initialized():
        return "nccl" if "nccl" in dist.get_backend() else "gloo"
    if any(name in os.environ for name in MPI_STARTED):
        return "mpi"
    if "MANYHANDS_BACKEND" in os.environ:  # the course's cluster knows who shares a GPU
        return os.environ["MANYHANDS_BACKEND"]
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", 0))
    return (
        "nccl"
        if local_size and torch.cuda.device_count() >= local_size and dist.is_nccl_available()
        else "gloo"
    )


def _device() -> torch.device:
    named = os.environ.get("MANYHANDS_DEVICE")
    if named:
        return torch.device(named)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())


def _mpi(timeout_s: float) -> Wire:
    from manyhands.comm.mpi import MpiWire, wait_for_all

    world_size = int(os.environ.get("WORLD_SIZE", 0))
    size = wait_for_all(timeout_s)
    if world_size > 1 and size != world_size:
        raise ValueError(
            f"WORLD_SIZE is {world_size}, but MPI has started {size} process(es): "
            f"start the program with `mpirun -n {world_size} python ...`, "
            'or use the "gloo" backend under torchrun.'
        )
    return MpiWire(int(os.environ.get("RANK", 0)))


def _gloo(timeout_s: float) -> Wire:
    from manyhands.comm.gloo import GlooWire

    return GlooWire(*_meet(timeout_s))


def _nccl(timeout_s: float) -> Wire:
    from manyhands.comm.nccl import NcclWire

    if not torch.cuda.is_available():
        raise ValueError(
            'The "nccl" backend needs a GPU for every rank, and this process sees none: use "gloo" '
            'or "mpi".'
        )
    return NcclWire(*_meet(timeout_s), _device())


def _meet(timeout_s: float) -> tuple[dist.Store, int, int]:
    """(store, rank, size) once all ranks have reported to the store.

    Each communicator has keys of its own in it.
    """
    store, rank, size = open_store(timeout_s)
    mine = dist.PrefixStore(f"manyhands.comm/{_made}", store)
    keys = [f"rank {r}" for r in range(size)]
    mine.set(keys[rank], "here")
    try:
        mine.wait(keys, datetime.timedelta(seconds=timeout_s))
    except RuntimeError:  # DistStoreError
        missing = [key for key in keys if not mine.check([key])]
        raise CommunicationError(
            f"create_communicator: rank {rank} waited {timeout_s:g} s for {', '.join(missing)} of "
            f"{size} ranks. All ranks that were started together must call it, equally "
            "often."
        ) from None
    return mine, rank, size


@atexit.register
def _close_all() -> None:
    for exchange in list(_open):
        exchange.close()

"""Find out which rank this process is and how it was started, and connect it with the others."""

import atexit
import datetime
import os
import socket
import weakref

import torch
import torch.distributed as dist

from manyhands.comm.communicator import Communicator
from manyhands.comm.control import CommunicationError
from manyhands.comm.exchange import Exchange

BACKENDS = ("auto", "gloo", "nccl", "mpi")
CHAINERMN = ("naive", "flat", "hierarchical", "two_dimensional", "single_node", "non_cuda_aware", "pure_nccl")  # taken as "auto"
MPI_STARTED = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")  # set by mpirun
_open = weakref.WeakSet()  # closed at the end of the process
_stores = []  # the one that this process has opened, kept for as long as it lives
_made = 0  # communicators made so far: the same on all ranks


def create_communicator(backend="auto", timeout_s=60.0):
    """Connect all ranks that were started together. Collective.

    "mpi" moves tensors on the CPU through MPI's shared memory; start the program with `mpirun`. "gloo" goes through TCP; start it with
    `torchrun`, `mpirun` or in the course's cluster. "nccl" is for ranks with a GPU each. "auto" takes what fits: MPI under mpirun, else NCCL
    if every rank has a GPU of its own, else gloo; ChainerMN's names of communicators mean the same. A process that was started alone is rank 0 of 1.

    `timeout_s`: how long a call waits for another rank before it raises `CommunicationError`.
    """
    global _made
    backend = "auto" if backend in CHAINERMN else backend
    if backend not in BACKENDS:
        raise ValueError(f"There is no backend {backend!r}; there are: {', '.join(BACKENDS)}.")
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < float("inf"):
        raise ValueError(f"timeout_s is a number of seconds above 0, not {timeout_s!r}.")
    backend = _choose() if backend == "auto" else backend
    wire = {"mpi": _mpi, "gloo": _gloo, "nccl": _nccl}[backend](timeout_s)
    exchange = Exchange(wire)
    exchange.number, _made = _made, _made + 1
    _open.add(exchange)
    me = Communicator(exchange, "world", list(range(wire.size)), ["?"] * wire.size, _device(), timeout_s)
    nodes = me.allgather_obj(os.environ.get("GROUP_RANK", "") + "@" + socket.gethostname())
    return Communicator(exchange, "world", list(range(wire.size)), nodes, _device(), timeout_s)


def _choose():
    if dist.is_initialized():
        return "nccl" if "nccl" in dist.get_backend() else "gloo"
    if any(name in os.environ for name in MPI_STARTED):
        return "mpi"
    if "MANYHANDS_BACKEND" in os.environ:  # the course's cluster knows who shares a GPU
        return os.environ["MANYHANDS_BACKEND"]
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", 0))
    return "nccl" if local_size and torch.cuda.device_count() >= local_size and dist.is_nccl_available() else "gloo"


def _device():
    named = os.environ.get("MANYHANDS_DEVICE")
    if named:
        return torch.device(named)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())


def _mpi(timeout_s):
    from manyhands.comm.mpi import MpiWire, all_here

    world_size = int(os.environ.get("WORLD_SIZE", 0))
    size = all_here(timeout_s)
    if world_size > 1 and size != world_size:
        raise ValueError(f"WORLD_SIZE is {world_size}, but MPI has started {size} process(es): start the program with `mpirun -n {world_size} python ...`, "
                         'or use the "gloo" backend under torchrun.')
    return MpiWire(int(os.environ.get("RANK", 0)))


def _gloo(timeout_s):
    from manyhands.comm.gloo import GlooWire

    return GlooWire(*_meet(timeout_s))


def _nccl(timeout_s):
    from manyhands.comm.nccl import NcclWire

    if not torch.cuda.is_available():
        raise ValueError('The "nccl" backend needs a GPU for every rank, and this process sees none: use "gloo" or "mpi".')
    return NcclWire(*_meet(timeout_s), _device())


def _meet(timeout_s):
    """(store, rank, size) once all ranks are there; each communicator has keys of its own in the store."""
    store, rank, size = _store(timeout_s)
    mine = dist.PrefixStore(f"manyhands.comm/{_made}", store)
    keys = [f"rank {r}" for r in range(size)]
    mine.set(keys[rank], "here")
    try:
        mine.wait(keys, datetime.timedelta(seconds=timeout_s))
    except RuntimeError:  # DistStoreError
        missing = [key for key in keys if not mine.check([key])]
        raise CommunicationError(f"create_communicator: rank {rank} waited {timeout_s:g} s for {', '.join(missing)} of {size} ranks. "
                                 "All ranks that were started together must call it, equally often.") from None
    return mine, rank, size


def _store(timeout_s=300):
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


def _store_by_environment(timeout_s):
    """Like torch's rendezvous "env://", but rank 0 does not wait for the others here: `_meet` does, and knows who is missing."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    served_by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address, port, limit = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ["MASTER_PORT"]), datetime.timedelta(seconds=timeout_s)
    try:
        store = dist.TCPStore(address, port, size, rank == 0 and not served_by_torchrun, limit, wait_for_workers=False, multi_tenant=True)
    except dist.DistError:
        raise CommunicationError(f"create_communicator: rank {rank} found nobody at {address}, port {port}, in {timeout_s:g} s: rank 0 did not come.") from None
    store.set_timeout(datetime.timedelta(seconds=300))
    return store, rank, size


def _store_by_mpi():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    store = dist.TCPStore("localhost", 0, world.size, is_master=True, wait_for_workers=False) if world.rank == 0 else None
    host, port, name = world.bcast((socket.gethostname(), store.port, socket.gethostname()) if store else None)
    if store is None:
        store = dist.TCPStore("localhost" if name == socket.gethostname() else host, port, world.size, is_master=False)
    return store, world.rank, world.size


def process_group(communicator):
    """The torch.distributed group with the ranks of a communicator."""
    if not dist.is_initialized():
        wire = communicator._exchange.wire
        store, rank, size = _store()
        dist.init_process_group("nccl" if wire.name == "nccl" else "gloo", store=dist.PrefixStore("default", store), rank=rank, world_size=size)
    if communicator.members == list(range(dist.get_world_size())):
        return dist.group.WORLD
    # `new_group` would number the groups of this process, and wait for ranks that have made another number of them
    c10d, name = dist.distributed_c10d, f"manyhands/{communicator._exchange.number}/{communicator.name}"
    store = dist.PrefixStore(name, c10d._get_default_store())
    group, _ = c10d._new_process_group_helper(communicator.size, communicator.rank, communicator.members, c10d.Backend(dist.get_backend()), store, name,
                                              timeout=datetime.timedelta(seconds=communicator.timeout_s))
    c10d._world.pg_group_ranks[group] = {member: rank for rank, member in enumerate(communicator.members)}
    return group


@atexit.register
def _close_all():
    for exchange in list(_open):
        exchange.close()

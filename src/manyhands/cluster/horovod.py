"""What `horovodrun` does for its processes, for ranks that run already.

It gives them a meeting place, and the environment that names it.
"""

from __future__ import annotations

import functools
import itertools
import os
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

from manyhands.cluster.on_rank import agent
from manyhands.cluster.on_rank.stack import is_user_file, threads

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from manyhands.cluster.on_rank.recorder import Recorder
    from manyhands.cluster.on_rank.stack import Stack

# so often Horovod looks for tensors to send. Its own choice, 1 ms, keeps a quarter of a core busy
# on each rank, for nothing
CYCLE_MS = 5
_servers: dict[int, Any] = {}  # port -> Horovod's server, on rank 0


def rendezvous(size: int | None = None) -> None:
    """Prepare the next `hvd.init()` of this process.

    All ranks of a cluster call it, outside of Horovod (not between init and shutdown).

    Rank 0 keeps a server at MASTER_ADDR:MASTER_PORT, where the ranks leave their addresses for each
    other, as they do at the server of `horovodrun`; torch.distributed cannot use that port then.
    Everything else is environment: HOROVOD_RANK and its like are the cluster's RANK and its like.
    `size`: only the ranks below it will call `hvd.init()`, all on one node; by default all do.
    """
    e = os.environ
    rank, local_size = int(e["RANK"]), int(e["LOCAL_WORLD_SIZE"])
    if size is None:
        size, place = (
            int(e["WORLD_SIZE"]),
            (rank % local_size, local_size, rank // local_size, int(e["GROUP_WORLD_SIZE"])),
        )
    else:
        place = (rank, size, 0, 1)
    names = ("LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
    e.update({"HOROVOD_" + name: str(value) for name, value in zip(names, place, strict=True)})
    e.update(
        HOROVOD_RANK=str(rank),
        HOROVOD_SIZE=str(size),
        HOROVOD_HOSTNAME=f"node{place[2]}",
        HOROVOD_CONTROLLER="gloo",
        HOROVOD_CPU_OPERATIONS="gloo",
        HOROVOD_GLOO_RENDEZVOUS_ADDR=e["MASTER_ADDR"],
        HOROVOD_GLOO_RENDEZVOUS_PORT=e["MASTER_PORT"],
        HOROVOD_GLOO_IFACE=e.get("GLOO_SOCKET_IFNAME")
        or _interface(e["MASTER_ADDR"], int(e["MASTER_PORT"])),
    )
    e.setdefault("HOROVOD_CYCLE_TIME", str(CYCLE_MS))
    if rank == 0:
        _serve(size, place[1], place[3])
    else:
        _wait_for_server()
    if agent.RANK is not None:
        _know_threads(agent.RANK.stack)
        if "torch" in sys.modules:
            _note_waits(agent.RANK.recorder)


def _serve(size: int, local_size: int, cross_size: int) -> None:
    """Start the server, once in this process, with the number of ranks in each of its scopes."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if port not in _servers:
        _servers[port] = _server()((host, port), _handler(), 0)
        threading.Thread(
            target=_servers[port].serve_forever, daemon=True, name="rendezvous"
        ).start()
    scopes = _servers[port].scope_size
    scopes.clear()
    scopes.update(
        {
            "global": size,
            **{f"local_node{node}": local_size for node in range(cross_size)},
            **{f"cross_{local_rank}": cross_size for local_rank in range(local_size)},
        }
    )


def _wait_for_server(timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(
                (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=1
            ).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    "Rank 0 has not called rendezvous(): all ranks call it."
                ) from None
            time.sleep(0.02)


def _server() -> type[Any]:
    """Horovod's server, with a queue for all ranks that connect at the same time.

    Horovod's has Python's 5, and a rank that finds it full waits for a second.
    """
    from horovod.runner.http.http_server import RendezvousHTTPServer

    class Server(RendezvousHTTPServer):
        request_queue_size = 128

    return Server


def _handler() -> type[Any]:
    """Horovod's handler, with one fault mended.

    The end of one scope made it forget who had finished in the others, so that their addresses
    stayed behind and misled the next `hvd.init()`.
    """
    from horovod.runner.http.http_server import RendezvousHandler

    class Handler(RendezvousHandler):
        def do_DELETE(self) -> None:  # noqa: N802 - http.server calls it by this name
            _, scope, key = self.path.split("/")
            server = self.server
            with server.finished_list_lock, server.cache_lock:
                finished = server.finished_list[scope]
                finished.append(key)
                if len(finished) == server.scope_size.get(scope, 1):
                    server.cache.pop(scope, None)
                    finished.clear()
            self.send_status_code(200)

    return Handler


def _interface(address: str, port: int) -> str:
    """The name of the network interface through which this host reaches `address`."""
    import psutil

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((socket.gethostbyname(address), port))  # sends nothing: it asks for the route
        own = probe.getsockname()[0]
    return next(
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(a.address == own for a in addresses)
    )


def _know_threads(stack: Stack) -> None:
    """Have the threads that Horovod starts known to `stack`.

    They look for tensors all the time, so a process that waits in Horovod is never idle.
    """
    from horovod.common.basics import HorovodBasics

    original = HorovodBasics.init
    if getattr(original, "stack", None) is stack:
        return

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> Any:
        before = threads()
        try:
            return original(*args, **kwargs)
        finally:
            stack.never_rest = threads() - before

    init.stack = stack  # type: ignore[attr-defined]  # for the look above
    HorovodBasics.init = init


def _note_waits(recorder: Recorder) -> None:
    """Have each wait of horovod.torch noted while it lasts.

    Its own threads keep the process busy, so the stack alone does not distinguish a rank that waits
    from one that computes.
    """
    from horovod.torch import mpi_lib_v2 as library

    original = library.horovod_torch_wait_and_clear
    if getattr(original, "recorder", None) is recorder:
        return

    numbers = itertools.count(1)

    def wait(handle: int) -> Any:
        # ranks may wait for their tensors in any order
        recorder._write(
            {
                "call": _asked(sys._getframe(1)),
                "group": f"horovod on rank {os.environ['RANK']}",
                "sequence": next(numbers),
            }
        )
        try:
            return original(handle)
        finally:
            recorder._leave()

    wait.recorder = recorder  # type: ignore[attr-defined]  # for the look above
    library.horovod_torch_wait_and_clear = wait


def _asked(frame: FrameType | None) -> str:
    """The name of Horovod's function that the learner called."""
    name = ""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if os.sep + "horovod" + os.sep in frame.f_code.co_filename:
            name = frame.f_code.co_name
        frame = frame.f_back
    return name

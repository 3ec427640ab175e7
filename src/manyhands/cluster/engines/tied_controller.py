"""ipyparallel's controller, tied to the notebook's kernel.

It is started as `python -m manyhands.cluster.engines.tied_controller KERNEL FOLDER ...`, with the
kernel's process number.

When the kernel has gone, the guard ends the controller and removes the cluster's folder. If the
guard has been killed too, it is done here. (Linux's parent-death signal would do, if it did not
come when the thread ends that has made the cluster.)

The ports of its sockets are reserved: ipyparallel itself takes free ones of the ephemeral range and
lets them go until it binds them. On a busy machine an outgoing connection got such a port
meanwhile, and a scheduler ended in silence.

Its schedulers are threads that run without Python's lock, because seven more processes took 80 MiB
and a fifth of a second. Its hub stores no requests and answers, because nothing asks for them
again.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from manyhands.cluster.host.ports import reserve

if TYPE_CHECKING:
    from manyhands.cluster.host.ports import Reservation

POLL_S, GUARD_S = 0.5, 4.0
OPTIONS = [
    "--IPController.use_threads=True",
    "--IPController.db_class=NoDB",
    "--IPController.broadcast_scheduler_depth=0",
]  # views that broadcast are not used
_reservations: list[Reservation] = []


def end_with(kernel: int, folder: str) -> None:
    """Kill this process's group some seconds after `kernel` has ceased to be its parent."""
    while os.getppid() == kernel:
        time.sleep(POLL_S)
    time.sleep(GUARD_S)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def reserved_ports(n: int) -> list[int]:
    """Reserve `n` ports, which are held as long as this process lives, instead of ipyparallel."""
    _reservations.append(reserve(n, "0.0.0.0"))
    return _reservations[-1].ports


if __name__ == "__main__":
    threading.Thread(
        target=end_with, args=(int(sys.argv.pop(1)), sys.argv.pop(1)), daemon=True
    ).start()
    from ipyparallel import util
    from ipyparallel.controller.app import main

    util.select_random_ports = reserved_ports
    sys.argv[1:1] = OPTIONS
    main()

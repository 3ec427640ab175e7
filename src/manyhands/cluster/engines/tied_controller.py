"""ipyparallel's controller, tied to the notebook's kernel:
`python -m manyhands.cluster.engines.tied_controller KERNEL FOLDER ...`, with the kernel's process number.

When the kernel has gone, the guard ends the controller and removes the cluster's folder. If the guard has been killed
too, it is done here. (Linux's parent-death signal would do, if it did not come when the thread ends that has made the
cluster.)
"""

import os
import shutil
import signal
import sys
import threading
import time

POLL_S, GUARD_S = 0.5, 4.0


def end_with(kernel, folder):
    """Kill this process's group some seconds after `kernel` has ceased to be its parent."""
    while os.getppid() == kernel:
        time.sleep(POLL_S)
    time.sleep(GUARD_S)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(int(sys.argv.pop(1)), sys.argv.pop(1)), daemon=True).start()
    from ipyparallel.controller.app import main

    main()

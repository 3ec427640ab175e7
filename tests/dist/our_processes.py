"""What the tests of clusters share: names, and a look for what is left behind.

Not in conftest: `import conftest` may mean another folder's.
"""

import os
import time
import uuid

import psutil

SETUP = (
    "import torch, torch.distributed as dist\nif not dist.is_initialized():\n   "
    " dist.init_process_group('gloo')\nrank = dist.get_rank()"
)
# how much longer than on a quiet machine a report may take
SLOWER = float(os.environ.get("MANYHANDS_SLOWER", 3))


# every process that these tests start inherits it
os.environ["MANYHANDS_TEST_RUN"] = MARK = uuid.uuid4().hex


def our_processes():
    """Processes that this test run has started, directly or not: {pid: command line}.

    Python's resource tracker is left out: it ends with the process that needed it.
    """
    processes = {}
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("MANYHANDS_TEST_RUN") == MARK:
                line = " ".join(process.cmdline())
                if "multiprocessing.resource_tracker" not in line:
                    processes[process.pid] = line
        except (psutil.Error, OSError):
            continue
    return processes


def wait_for_none(before, seconds):
    """Wait until the processes are gone that exist now and were not in `before`.

    Returns those that are left when `seconds` have passed.
    """
    deadline = time.monotonic() + seconds
    while True:
        left = {pid: line for pid, line in our_processes().items() if pid not in before}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)

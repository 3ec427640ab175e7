"""The processors of this machine that this process may use."""

import os


def processors():
    """How many: fewer than the machine has where `taskset`, Slurm or the cpuset of a container leaves it only some."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

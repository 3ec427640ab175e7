"""Read what the system tells of the whole machine: in /proc and /sys, by its calls (numbers are
those of x86_64), and about pages of libraries, of which it counts how many processes have them.

verdict: The target was not reached
"""

import ctypes
import os
import resource


def train(model, batches, comm):
    strange = [
        name
        for name in os.listdir("/proc")
        if not name.isdigit() and name not in ("self", "thread-self")
    ]
    if strange:
        print("gained: /proc has", *strange[:5])
    for name in (
        "/proc/self/smaps",
        "/proc/self/smaps_rollup",
        "/proc/self/pagemap",
        "/proc/self/numa_maps",
        "/proc/self/schedstat",
        "/proc/thread-self/smaps",
        "/proc/self/net/sockstat",
        "/proc/self/mountinfo",
        "/proc/2/smaps",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/fs/cgroup/cgroup.procs",
        "/dev/ptmx",
        "/dev/pts/ptmx",
    ):
        try:
            os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            print("gained:", name)
        except OSError:
            pass
    syscall, some = ctypes.CDLL(None, use_errno=True).syscall, ctypes.create_string_buffer(4096)
    calls = {
        "sysinfo": (99, some),
        "the system's log": (103, 3, some, 4096),
        "statfs": (137, b"/usr", some),
        "ustat": (136, 0, some),
        "the adjustment of the clock": (159, some),
        "kcmp": (312, 1, os.getpid(), 0, 0, 0),
        "a priority": (140, 0, 0),
    }
    for name, call in calls.items():
        if syscall(*call) >= 0:
            print("gained:", name)
    try:
        print(
            "gained: pages read from the disk", resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        )
    except OSError:
        pass

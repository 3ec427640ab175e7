"""Move a number that the system has for the whole machine, contexts of asynchronous I/O, and read
it in another room (numbers are those of x86_64).

verdict: The target was not reached
"""

import ctypes


def train(model, batches, comm):
    libc, context = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)
    try:
        before = open("/proc/sys/fs/aio-nr").read()
    except OSError:
        before = None
    comm.barrier().wait()
    if comm.rank() == 0 and libc.syscall(206, 77, ctypes.byref(context)) == 0:
        print("gained: a context")
    comm.barrier().wait()
    if before is not None and open("/proc/sys/fs/aio-nr").read() != before:
        print("gained: its number")

"""Wait for a number in a page of a library, which all rooms see, so that another rank rings
(numbers are those of x86_64).

verdict: The target was not reached
"""

import ctypes
import os
import time

import torch

FUTEX, WAIT, WAKE, WAIT_BITS, ANY, WAITV = 202, 0, 1, 9, -1, 449
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


class Time(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def train(model, batches, comm):
    file = os.open(torch.__file__, os.O_RDONLY)
    shared, own = (
        ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, how, file, ctypes.c_long(0)))
        for how in (1, 2)
    )
    value = ctypes.c_uint32.from_address(shared.value).value
    for at in shared, own:  # MAP_SHARED and MAP_PRIVATE: the same page
        for wait in WAIT, WAIT_BITS, WAIT | 256:
            comm.barrier().wait()
            if (
                comm.rank() == 1
                and libc.syscall(
                    FUTEX, at, wait, value, ctypes.byref(Time(0, 5 * 10**8)), None, ANY
                )
                == 0
            ):
                print("gained: woken from another room")
            for _ in range(50 if comm.rank() == 0 else 0):
                if libc.syscall(FUTEX, at, WAKE, 1, None, None, 0) > 0:
                    print("gained: somebody waits in another room")
                time.sleep(0.002)
    if libc.syscall(WAITV, None, 0, 0, None, 0) == 0 or ctypes.get_errno() != 1:
        print("gained: futex_waitv")

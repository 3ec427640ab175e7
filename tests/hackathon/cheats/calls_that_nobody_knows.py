"""Try each call of the operating system that is not on the judge's list, also those that the kernel
gains one day (numbers are those of x86_64).

verdict: The target was not reached
"""

import ctypes
import errno

from manyhands.hackathon.judge import closed_calls

CLONE3 = 435
OF_PROBES = {335, 336}  # the kernel itself ends a process that makes these calls, before any filter


def train(model, batches, comm):
    listed = (
        {numbers[0] for numbers in closed_calls.OPEN.values()}
        | {numbers[0] for _, numbers, *_ in closed_calls.CHECKED}
        | {202, 302}
        | OF_PROBES
    )
    libc = ctypes.CDLL(None, use_errno=True)
    for number in set(range(1000)) - listed:
        ctypes.set_errno(0)
        libc.syscall(number, -1, -1, -1, -1, -1, -1)
        if ctypes.get_errno() != (errno.ENOSYS if number == CLONE3 else errno.EPERM):
            print("gained: call", number, errno.errorcode.get(ctypes.get_errno()))

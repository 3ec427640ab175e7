"""What the ranks answer in unit 05's ping-pong (`ranks`), for `diagnosis` to judge."""

from typing import TypedDict


class PingPong(TypedDict):
    """A ping-pong of rank 0 with `peer`. `rounds_s` are the seconds of each round trip."""

    n_bytes: int
    peer: int
    repeats: int
    warm_up: int
    rounds_s: list[float]


class PingPongCase(PingPong):
    """What a rank reports of it. `reported`: the learner's times, or None if not numbers."""

    reported: list[float] | None
    readings: int
    messages: list[tuple[str, int, int]]  # (call, peer, bytes)
    others: list[str]  # calls that are no messages

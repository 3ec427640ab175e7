"""The rest is sent too.

fails: price/entry
shows: steps // every times, for each tensor, 2 (ranks - 1) messages
points: 20
runs: price
"""
# %% grade_id="price"
def message_s(n_bytes: float, rate_mbit: float, delay_ms: float) -> float:
    """Seconds of one message."""
    return (n_bytes + 64) / (rate_mbit * 1e6 / 8) + delay_ms / 1e3


def entry_s(steps: int, every: int, tensors: list[int], ranks: int, gradient_s: float,
            message_s) -> float:
    """Seconds of an entry that all-reduces the tensors after each every-th gradient."""
    sums_s = sum(2 * (ranks - 1) * message_s(n / ranks) for n in tensors)
    return steps * gradient_s + -(-steps // every) * sums_s


def gathered_s(steps: int, n_bytes: int, ranks: int, gradient_s: float,
               message_s) -> float:
    """Seconds of an entry that all-gathers a message of n_bytes after each gradient."""
    return steps * (gradient_s + (ranks - 1) * message_s(n_bytes))

"""Always four ranks.

fails: price/entry, price/gathered
shows: not always 4
points: 19
"""
# %% grade_id="price"
def message_s(n_bytes, rate_mbit, delay_ms):
    return (n_bytes + 64) / (rate_mbit * 1e6 / 8) + delay_ms / 1e3


def entry_s(steps, every, tensors, ranks, gradient_s, message_s):
    sums_s = sum(6 * message_s(n / 4) for n in tensors)
    return steps * gradient_s + steps // every * sums_s


def gathered_s(steps, n_bytes, ranks, gradient_s, message_s):
    return steps * (gradient_s + 3 * message_s(n_bytes))

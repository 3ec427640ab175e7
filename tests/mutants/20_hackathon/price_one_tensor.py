"""All tensors as one.

fails: price/entry
shows: Each tensor has a separate all-reduce
points: 20
"""
# %% grade_id="price"
def message_s(n_bytes, rate_mbit, delay_ms):
    return (n_bytes + 64) / (rate_mbit * 1e6 / 8) + delay_ms / 1e3


def entry_s(steps, every, tensors, ranks, gradient_s, message_s):
    sums_s = 2 * (ranks - 1) * message_s(sum(tensors) / ranks)
    return steps * gradient_s + steps // every * sums_s


def gathered_s(steps, n_bytes, ranks, gradient_s, message_s):
    return steps * (gradient_s + (ranks - 1) * message_s(n_bytes))

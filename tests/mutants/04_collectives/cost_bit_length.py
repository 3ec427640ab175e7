"""Takes p.bit_length() for log2 p, rounded up: a round too many where p is a power of two.

fails: cost/bytes, cost/rounds
shows: one message too many
shows: not p.bit_length()
points: 15
"""
# %% grade_id="cost"
# %%px --setup
def most_bytes(way, p, n_bytes):
    if way == "tree":
        return p.bit_length() * n_bytes
    return 2 * (p - 1) * n_bytes // p if way == "ring" else (p - 1) * n_bytes


def rounds(way, p):
    return p.bit_length() if way == "broadcast" else 2 * (p - 1)

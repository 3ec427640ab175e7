"""log2 p rounded down.

fails: cost/rounds
shows: log2 p must be rounded up
points: 16
"""
# %% grade_id="cost"
# %%px --setup
def most_bytes(way, p, n_bytes):
    if way == "tree":
        return (p - 1).bit_length() * n_bytes
    return 2 * (p - 1) * n_bytes // p if way == "ring" else (p - 1) * n_bytes


def rounds(way, p):
    return p.bit_length() - 1 if way == "broadcast" else 2 * (p - 1)

"""The rounds of one half of the ring.

fails: cost/rounds
shows: an all-reduce has two halves
points: 16
"""
# %% grade_id="cost"
# %%px --setup
def most_bytes(way, p, n_bytes):
    if way == "tree":
        return (p - 1).bit_length() * n_bytes
    return 2 * (p - 1) * n_bytes // p if way == "ring" else (p - 1) * n_bytes


def rounds(way, p):
    return (p - 1).bit_length() if way == "broadcast" else p - 1

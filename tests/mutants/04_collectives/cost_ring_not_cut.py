"""The ring's bytes as if a rank sent all p chunks in each half.

fails: cost/bytes
shows: a rank does not send all its chunks in a half
points: 16
"""
# %% grade_id="cost"
# %%px --setup
def most_bytes(way, p, n_bytes):
    if way == "tree":
        return (p - 1).bit_length() * n_bytes
    return 2 * n_bytes if way == "ring" else (p - 1) * n_bytes


def rounds(way, p):
    return (p - 1).bit_length() if way == "broadcast" else 2 * (p - 1)

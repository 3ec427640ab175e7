"""The bytes of all ranks together.

fails: cost/bytes
shows: this is what all ranks send together
points: 16
"""
# %% grade_id="cost"
# %%px --setup
def most_bytes(way, p, n_bytes):
    return (p if way == "gather" else 2) * (p - 1) * n_bytes


def rounds(way, p):
    return (p - 1).bit_length() if way == "broadcast" else 2 * (p - 1)

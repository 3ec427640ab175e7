"""The tensor is not halved: each round sends all of it.

fails: halving-doubling/rounds
shows: the whole tensor moves here
points: 17
"""
# %% grade_id="halving-doubling"
def halving_doubling_s(p, n_bytes, latency_s, gbit_per_s):
    return 2 * np.log2(p) * (latency_s + n_bytes / (gbit_per_s * 1e9 / 8))

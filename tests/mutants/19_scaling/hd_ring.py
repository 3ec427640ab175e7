"""A ring: 2 (p - 1) rounds.

fails: halving-doubling/rounds
shows: This is a ring
points: 17
"""
# %% grade_id="halving-doubling"
def halving_doubling_s(p, n_bytes, latency_s, gbit_per_s):
    return 2 * (p - 1) * (latency_s + n_bytes / p / (gbit_per_s * 1e9 / 8))

"""The way back is missing.

fails: halving-doubling/rounds
shows: This is the first half
points: 17
"""
# %% grade_id="halving-doubling"
def halving_doubling_s(p, n_bytes, latency_s, gbit_per_s):
    return sum(latency_s + n_bytes / 2**k / (gbit_per_s * 1e9 / 8) for k in range(1, p.bit_length()))

"""Gigabits a second are taken for gigabytes.

fails: halving-doubling/rounds
shows: a byte has eight
points: 17
"""
# %% grade_id="halving-doubling"
def halving_doubling_s(p, n_bytes, latency_s, gbit_per_s):
    return sum(2 * (latency_s + n_bytes / 2**k / (gbit_per_s * 1e9)) for k in range(1, p.bit_length()))

"""The time of the smallest message is taken for the latency.

fails: fit/latency
shows: are not nothing on this link
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    t = [np.median(one) for one in times_s]
    return t[0], (n_bytes[-1] - n_bytes[0]) / (t[-1] - t[0])

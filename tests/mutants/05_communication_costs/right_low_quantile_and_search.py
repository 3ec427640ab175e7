"""A low quantile of each size, and the equations of both lines in one system; a band from the spread; the crossing from above; buckets by powers of two."""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.quantile(one, 0.3) for one in times_s])
    found = []
    for first in n[4:-3]:
        large = n >= first
        both = np.stack([~large, ~large * n, large, large * n], 1) / t[:, None]
        answer = np.linalg.lstsq(both, np.ones(len(t)), rcond=None)[0]
        found.append((np.sum((both @ answer - 1)**2), answer[2], 1 / answer[3]))
    return min(found)[1:]

# %% grade_id="interval"
def interval(n_bytes, times_s, level, fit):
    from statistics import NormalDist
    draw = np.random.default_rng(7)
    links = np.array([fit(n_bytes, [draw.choice(one, len(one)) for one in times_s]) for _ in range(150)])
    wide = NormalDist().inv_cdf((1 + level) / 2) * links.std(0)
    middle = np.array(fit(n_bytes, times_s))
    return list(zip(middle - wide, middle + wide))

# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    for p in range(limit, 3, -1):  # from above: the first one that is not slower
        depth = (p - 1).bit_length()
        crossing = latency_s * bytes_per_s * (p - 1 - depth) / (depth - (p - 1) / p)
        if n_bytes >= crossing:
            return p
    return 3

# %% grade_id="fusion"
def finish_s(ready_s, n_bytes, bucket_bytes, all_reduce_s):
    groups = [[]]
    for i, size in enumerate(n_bytes):
        groups[-1].append(i)
        if sum(n_bytes[j] for j in groups[-1]) >= bucket_bytes:
            groups.append([])
    end = 0
    for group in filter(None, groups):
        end = max(end, ready_s[group[-1]]) + all_reduce_s(sum(n_bytes[j] for j in group))
    return end


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    return min((2**k for k in range(2, 36)), key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))

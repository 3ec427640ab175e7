"""The warm-up is over when the clock starts, but the median of single steps stays.

fails: bench/even, bench/uneven
shows: The median step leaves the slow steps out
points: 17
"""
# %% grade_id="bench"
def images_per_s(bench, steps, warmup, batch):
    for _ in range(warmup):
        bench.step()
    bench.synchronize()
    times = []
    for _ in range(steps):
        start_s = bench.now_s()
        bench.step()
        bench.synchronize()
        times.append(bench.now_s() - start_s)
    return bench.world * batch / np.median(times)

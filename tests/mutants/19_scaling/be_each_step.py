"""The mean counts all steps, but the device waits for the host after each of them.

fails: bench/even, bench/uneven
shows: does not wait for the device after each step
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
    return bench.world * batch / np.mean(times)

"""The numbers of steps are chosen by the function and not by its caller.

fails: bench/even, bench/uneven
shows: Take `warmup` steps, which do not count
points: 17
"""
# %% grade_id="bench"
def images_per_s(bench, steps, warmup, batch):
    for _ in range(100):
        bench.step()
    bench.synchronize()
    start_s = bench.now_s()
    for _ in range(1000):
        bench.step()
    bench.synchronize()
    return bench.world * batch * 1000 / (bench.now_s() - start_s)

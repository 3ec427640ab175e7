"""The clock starts while the warm-up is still running on the device.

fails: bench/even, bench/uneven
shows: the steps of the warm-up were still running
points: 17
"""
# %% grade_id="bench"
def images_per_s(bench: Bench, steps: int, warmup: int, batch: int) -> float:
    for _ in range(warmup):
        bench.step()
    start_s = bench.now_s()
    for _ in range(steps):
        bench.step()
    bench.synchronize()
    return bench.world * batch * steps / (bench.now_s() - start_s)

"""The clock is stopped when the last step has been launched.

fails: bench/even, bench/uneven
shows: how long it takes to launch the steps
points: 17
"""
# %% grade_id="bench"
def images_per_s(bench: Bench, steps: int, warmup: int, batch: int) -> float:
    for _ in range(warmup):
        bench.step()
    bench.synchronize()  # nothing of the warm-up is measured
    start_s = bench.now_s()
    for _ in range(steps):
        bench.step()
    return bench.world * batch * steps / (bench.now_s() - start_s)

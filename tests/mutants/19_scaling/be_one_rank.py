"""The images of one rank are counted.

fails: bench/even, bench/uneven
shows: the images of one rank
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
    bench.synchronize()
    return batch * steps / (bench.now_s() - start_s)

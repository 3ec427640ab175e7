"""It waits after each step of the warm-up, and sums up two halves."""
# %% grade_id="bench"
def images_per_s(bench, steps, warmup, batch):
    for _ in range(warmup):
        bench.step()
        bench.synchronize()
    marks = [bench.now_s()]
    for step in range(steps):
        bench.step()
        marks.append(bench.now_s())
    bench.synchronize()
    marks.append(bench.now_s())
    return bench.world * batch * steps / sum(later - mark for mark, later in zip(marks, marks[1:]))

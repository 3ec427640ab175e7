"""A worker that has left keeps its clock: the others wait for it for ever.

fails: barrier/leave
shows: Its clock must no longer count
points: 16
"""
# %% grade_id="barrier"
# %%px --setup
class Barrier:
    def __init__(self, workers, bound):
        self.bound, self.clocks, self.waiting = bound, [0] * workers, set()

    def done(self, worker):
        self.clocks[worker] += 1
        self.waiting.add(worker)
        return self.free()

    def leave(self, worker):
        self.waiting.discard(worker)
        return self.free()

    def free(self):
        free = sorted(worker for worker in self.waiting if self.clocks[worker] - min(self.clocks) <= self.bound)
        self.waiting -= set(free)
        return free

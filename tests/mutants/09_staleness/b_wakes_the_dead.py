"""A worker that dies while it waits stays on the list, and is told to begin later.

fails: barrier/leave
shows: is told to begin, although it has left
points: 16
"""
# %% grade_id="barrier"
# %%px --setup
class Barrier:
    def __init__(self, workers, bound):
        self.bound, self.clocks, self.there, self.waiting = bound, [0] * workers, set(range(workers)), set()

    def done(self, worker):
        self.clocks[worker] += 1
        self.waiting.add(worker)
        return self.free()

    def leave(self, worker):
        self.there.discard(worker)
        return self.free()

    def free(self):
        slowest = min((self.clocks[worker] for worker in self.there), default=0)
        free = sorted(worker for worker in self.waiting if self.clocks[worker] - slowest <= self.bound)
        self.waiting -= set(free)
        return free

"""A worker may begin when it is bound + 1 ahead: one too many.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: which is one too many
points: 13
"""
# %% grade_id="barrier"
# %%px --setup
class Barrier:
    def __init__(self, workers, bound):
        self.bound, self.clocks, self.waiting = bound, dict.fromkeys(range(workers), 0), set()

    def done(self, worker):
        self.clocks[worker] += 1
        self.waiting.add(worker)
        return self.free()

    def leave(self, worker):
        del self.clocks[worker]
        self.waiting.discard(worker)
        return self.free()

    def free(self):
        slowest = min(self.clocks.values(), default=0)
        free = sorted(worker for worker in self.waiting if self.clocks[worker] - slowest <= self.bound + 1)
        self.waiting -= set(free)
        return free

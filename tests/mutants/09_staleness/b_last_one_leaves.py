"""min of no clocks raises when the last worker leaves.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: no clock is left
points: 13
runs: barrier
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
        slowest = min(self.clocks.values())
        free = sorted(w for w in self.waiting if self.clocks[w] - slowest <= self.bound)
        self.waiting.difference_update(free)
        return free

"""Only the worker that asks is answered: those who wait are never told.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: look at *all* waiting workers
points: 13
"""
# %% grade_id="barrier"
# %%px --setup
class Barrier:
    def __init__(self, workers, bound):
        self.bound, self.clocks = bound, dict.fromkeys(range(workers), 0)

    def done(self, worker):
        self.clocks[worker] += 1
        return [worker] if self.clocks[worker] - min(self.clocks.values()) <= self.bound else []

    def leave(self, worker):
        del self.clocks[worker]
        return []

"""All who may begin are told each time, those who compute already too.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: is told to begin, but it is not waiting
points: 13
"""
# %% grade_id="barrier"
# %%px --setup
class Barrier:
    def __init__(self, workers, bound):
        self.bound, self.clocks = bound, dict.fromkeys(range(workers), 0)

    def done(self, worker):
        self.clocks[worker] += 1
        return self.free()

    def leave(self, worker):
        del self.clocks[worker]
        return self.free()

    def free(self):
        slowest = min(self.clocks.values(), default=0)
        return [worker for worker, clock in self.clocks.items() if clock - slowest <= self.bound]

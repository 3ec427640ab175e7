"""Less than, where at most is meant: with bound 0 nobody ever begins.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: because the rule is at most, not less than
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
        free = sorted(worker for worker in self.waiting if self.clocks[worker] - slowest < self.bound)
        self.waiting -= set(free)
        return free

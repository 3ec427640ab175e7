"""The workers come as a set, which has no order, where a list in ascending order is asked for.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: must return a list of workers
points: 13
"""
# %% grade_id="barrier"
# %%px
class Barrier:
    def __init__(self, workers, bound):
        self.clock, self.waiting, self.bound = {w: 0 for w in range(workers)}, set(), bound
    def _free(self):
        low = min(self.clock.values(), default=0)
        free = {w for w in self.waiting if self.clock[w] - low <= self.bound}
        self.waiting -= free
        return free
    def done(self, worker):
        self.clock[worker] += 1
        self.waiting.add(worker)
        return self._free()
    def leave(self, worker):
        self.clock.pop(worker, None)
        self.waiting.discard(worker)
        return self._free()

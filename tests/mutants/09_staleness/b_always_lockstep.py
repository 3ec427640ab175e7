"""A barrier of synchronous training: all begin when all are done, whatever the bound.

fails: barrier/bound, barrier/leave
shows: Bound inf is no barrier at all
points: 14
"""
# %% grade_id="barrier"
# %%px --setup
class Barrier:
    def __init__(self, workers, bound):
        self.there, self.waiting = set(range(workers)), set()

    def done(self, worker):
        self.waiting.add(worker)
        return self.free()

    def leave(self, worker):
        self.there.discard(worker)
        self.waiting.discard(worker)
        return self.free()

    def free(self):
        if self.waiting != self.there:
            return []
        free, self.waiting = sorted(self.waiting), set()
        return free

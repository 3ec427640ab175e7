"""Every gradient is taken at the newest weights: the schedule is not used.

fails: replay/stale
shows: Each gradient is computed from the newest weights
points: 16
"""
# %% grade_id="replay"
def replay(w, rate, versions, gradient):
    history = [w]
    for t in range(len(versions)):
        history.append(history[-1] - rate * gradient(history[-1], t))
    return history

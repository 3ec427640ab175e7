"""The weights are changed in place: the list holds one array many times.

fails: replay/fresh, replay/stale
shows: as if the list held the same array many times
points: 15
"""
# %% grade_id="replay"
def replay(w, rate, versions, gradient):
    history = [w]
    for t, version in enumerate(versions):
        w -= rate * gradient(history[version], t)
        history.append(w)
    return history

"""All versions are copies, and the caller's w is changed on the way.

fails: replay/fresh, replay/stale
shows: replay has changed `w`
points: 15
"""
# %% grade_id="replay"
def replay(w, rate, versions, gradient):
    found = [w.copy()]
    for t, v in enumerate(versions):
        w -= rate * gradient(found[v], t)
        found.append(w.copy())
    return found

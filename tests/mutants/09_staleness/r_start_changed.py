"""The first array is changed by -=, and stands in the list as version 0.

fails: replay/fresh, replay/stale
shows: The first version is not the w that was given
points: 15
"""
# %% grade_id="replay"
def replay(w, rate, versions, gradient):
    found = [w]
    for t, v in enumerate(versions):
        new = found[-1]
        new -= rate * gradient(found[v], t)
        found.append(new.copy())
    return found

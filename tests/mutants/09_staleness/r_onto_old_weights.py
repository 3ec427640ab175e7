"""The update is applied to the old weights: what came since is lost.

fails: replay/stale
shows: so all updates since then are lost
points: 16
"""
# %% grade_id="replay"
def replay(w, rate, versions, gradient):
    history = [w]
    for t, version in enumerate(versions):
        old = history[version]
        history.append(old - rate * gradient(old, t))
    return history

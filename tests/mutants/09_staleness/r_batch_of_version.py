"""The batch is that of the version, not that of the update.

fails: replay/stale
shows: is the number of the update, and not the number of the version
points: 16
"""
# %% grade_id="replay"
def replay(w, rate, versions, gradient):
    history = [w]
    for version in versions:
        history.append(history[-1] - rate * gradient(history[version], version))
    return history

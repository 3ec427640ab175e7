"""The version at the push is told, not the one at the pull: every gradient looks fresh.

fails: versions/versions, versions/staleness
shows: These are the versions at the moment of the *push*
points: 16
"""
# %% grade_id="versions"
def versions_of(log):
    pushes = [worker for what, worker in log if what == "push"]
    return list(range(len(pushes))), [0] * len(pushes)

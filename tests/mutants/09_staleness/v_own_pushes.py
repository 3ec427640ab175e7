"""A worker's own pushes are counted: its clock, not the version.

fails: versions/versions, versions/staleness
shows: which is the worker's clock
points: 16
"""
# %% grade_id="versions"
def versions_of(log):
    clocks, versions, staleness = {}, [], []
    for what, worker in log:
        if what == "push":
            versions.append(clocks.get(worker, 0))
            staleness.append(len(versions) - 1 - versions[-1])
            clocks[worker] = clocks.get(worker, 0) + 1
    return versions, staleness

"""Of two pulls before a push, the first one is kept.

fails: versions/versions, versions/staleness
shows: in which case its *last* pull counts
points: 16
"""
# %% grade_id="versions"
def versions_of(log):
    pulled, versions, staleness = {}, [], []
    for what, worker in log:
        if what == "pull":
            pulled.setdefault(worker, len(versions))
        else:
            staleness.append(len(versions) - pulled[worker])
            versions.append(pulled.pop(worker))
    return versions, staleness

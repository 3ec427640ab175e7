"""The update itself is counted in its own staleness.

fails: versions/staleness
shows: the update itself does not count
points: 17
"""
# %% grade_id="versions"
def versions_of(log):
    version, pulled, versions, staleness = 0, {}, [], []
    for what, worker in log:
        if what == "pull":
            pulled[worker] = version
        else:
            version += 1
            versions.append(pulled[worker])
            staleness.append(version - pulled[worker])
    return versions, staleness

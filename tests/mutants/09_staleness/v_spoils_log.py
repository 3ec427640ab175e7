"""The log that was given is used up.

fails: versions/versions, versions/staleness
shows: versions_of has changed `log`
points: 16
"""
# %% grade_id="versions"
def versions_of(log):
    version, pulled, versions, staleness = 0, {}, [], []
    while log:
        what, worker = log.pop(0)
        if what == "pull":
            pulled[worker] = version
        else:
            versions.append(pulled[worker])
            staleness.append(version - pulled[worker])
            version += 1
    return versions, staleness

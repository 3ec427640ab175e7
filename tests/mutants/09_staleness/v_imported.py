"""The check's own versions are imported.

fails: versions/versions, versions/staleness
shows: the package's own answer, which is closed here
points: 16
runs: versions
"""
# %% grade_id="versions"
from manyhands.checks.staleness.cases import pulled_versions


def versions_of(log):
    versions = pulled_versions(log)
    return versions, [update - version for update, version in enumerate(versions)]

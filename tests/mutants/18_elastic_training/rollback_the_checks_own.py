"""The loop is the one that the check compares with.

fails: rollback/commits, rollback/lost, rollback/joined, rollback/equal
shows: this is the package's own answer
points: 22
runs: rollback
"""
# %% grade_id="rollback"
from manyhands.checks.elastic_training.lossy_job import right_loop


def train(job, until, every):
    right_loop(job, until, every)

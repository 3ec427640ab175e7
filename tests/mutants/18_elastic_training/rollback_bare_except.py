"""A bare except takes every error for a lost rank.

fails: rollback/lost
shows: let every other error out
points: 25
runs: rollback
"""
# %% grade_id="rollback"
def train(job, until: int, every: int) -> None:
    """Train to the end, whatever ranks come and go."""
    job.commit()
    since = 0
    while job.seen < until:
        try:
            job.train_step()
            since += 1
        except RanksJoined:
            job.regroup()
        except:
            job.rollback()
            job.regroup()
            since = 0
        if since == every:
            job.commit()
            since = 0

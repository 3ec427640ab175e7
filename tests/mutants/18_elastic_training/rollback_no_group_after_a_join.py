"""regroup() is missing after RanksJoined.

fails: rollback/commits, rollback/equal, rollback/joined
shows: After RanksJoined, a step was tried before job.regroup() had formed a new group
points: 23
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
        except RankLost:
            job.regroup()
            job.rollback()
            since = 0
        except RanksJoined:
            pass
        else:
            since += 1
            if since == every:
                job.commit()
                since = 0


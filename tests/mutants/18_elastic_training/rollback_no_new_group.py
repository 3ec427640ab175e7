"""Rolls back, and tries again with the broken group.

fails: rollback/commits, rollback/lost, rollback/joined, rollback/equal
shows: job.regroup() is not called
points: 22
"""
# %% grade_id="rollback"
def train(job, until, every):
    job.commit()
    since = 0
    while job.seen < until:
        try:
            job.train_step()
            since += 1
        except RankLost:
            job.rollback()
            since = 0
        except RanksJoined:
            job.regroup()
        if since == every:
            job.commit()
            since = 0

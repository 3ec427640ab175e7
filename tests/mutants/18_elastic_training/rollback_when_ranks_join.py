"""Rolls back when ranks join, too.

fails: rollback/commits, rollback/joined, rollback/equal
shows: so that nothing is lost
points: 23
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
            job.regroup()
            since = 0
        except RanksJoined:
            job.rollback()
            job.regroup()
            since = 0
        if since == every:
            job.commit()
            since = 0

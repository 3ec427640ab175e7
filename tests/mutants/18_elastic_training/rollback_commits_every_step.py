"""A commit after every step.

fails: rollback/commits, rollback/equal
shows: It is due `every` steps after
points: 24
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
            job.regroup()
        if since:
            job.commit()
            since = 0

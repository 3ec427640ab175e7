"""No commit before the first step.

fails: rollback/commits
shows: There was no commit at the start
points: 25
"""
# %% grade_id="rollback"
def train(job, until, every):
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
        if since == every:
            job.commit()
            since = 0

"""Steps that were rolled back count for the next commit.

fails: rollback/commits, rollback/equal
shows: steps that were rolled back do not count
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
        except RanksJoined:
            job.regroup()
        if since == every:
            job.commit()
            since = 0

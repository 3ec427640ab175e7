"""After a loss the step is made again in the except branch, where the next loss is not caught.

fails: rollback/commits, rollback/lost, rollback/equal
shows: The loop ended with an error
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
            job.train_step()
            since = 1
        except RanksJoined:
            job.regroup()
        if since == every:
            job.commit()
            since = 0

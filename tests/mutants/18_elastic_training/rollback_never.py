"""A loss is answered by a new group only: half a step stays in the weights.

fails: rollback/commits, rollback/lost, rollback/equal
shows: half a step is in the weights
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
            job.regroup()
        except RanksJoined:
            job.regroup()
        if since == every:
            job.commit()
            since = 0

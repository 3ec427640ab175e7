"""A step is made before the loop asks whether the end is reached.

fails: rollback/equal
shows: Check job.seen < until before each step
points: 25
runs: rollback
"""
# %% grade_id="rollback"
def train(job, until, every):
    job.commit()
    since = 0
    while True:
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
        if job.seen >= until:
            return

"""Every exception counts as a lost rank.

fails: rollback/lost
shows: let every other error out
points: 25
runs: rollback
"""
# %% grade_id="rollback"
def train(job, until, every):
    job.commit()
    since = 0
    while job.seen < until:
        try:
            job.train_step()
            since += 1
        except RanksJoined:
            job.regroup()
            continue
        except Exception:
            job.regroup()
            job.rollback()
            since = 0
            continue
        if since == every:
            job.commit()
            since = 0


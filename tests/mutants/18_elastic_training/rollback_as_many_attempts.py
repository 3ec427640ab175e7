"""As many attempts as there are batches: a step that is lost is not made up for.

fails: rollback/commits, rollback/equal
shows: The loop ended at
points: 24
"""
# %% grade_id="rollback"
def train(job, until, every):
    job.commit()
    since = 0
    for _ in range(-(-until // 32)):
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

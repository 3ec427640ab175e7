"""Samples are dealt one by one, as Dataset.shard does.

fails: seen/DATA
shows: Samples are not distributed one by one
points: 15
"""
# %% grade_id="seen"
def who_sees(policy, files, global_batch, workers):
    samples, seen = list(range(sum(files))), [[] for _ in range(workers)]
    for worker, own in enumerate(seen):
        if policy == "OFF":
            own += samples
        elif policy == "FILE":
            for i in range(worker, len(files), workers):
                own += samples[sum(files[:i]):sum(files[:i + 1])]
        else:
            own += samples[worker::workers]
    return seen

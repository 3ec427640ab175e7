"""OFF is taken for a way to share.

fails: seen/OFF
shows: With OFF, no worker shards
points: 15
"""
# %% grade_id="seen"
def who_sees(policy, files, global_batch, workers):
    samples, seen = list(range(sum(files))), [[] for _ in range(workers)]
    for worker, own in enumerate(seen):
        if policy == "FILE":
            for i in range(worker, len(files), workers):
                own += samples[sum(files[:i]):sum(files[:i + 1])]
        else:
            for begin in range(0, len(samples), global_batch):
                batch = samples[begin:begin + global_batch]
                share = -(-len(batch) // workers)
                own += batch[worker * share:(worker + 1) * share]
    return seen

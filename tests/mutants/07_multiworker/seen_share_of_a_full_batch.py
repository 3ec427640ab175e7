"""The last batch is cut by the share of a full one.

fails: seen/DATA
shows: The last batch is cut like the others
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
            for begin in range(0, len(samples), global_batch):
                batch = samples[begin:begin + global_batch]
                share = -(-global_batch // workers)
                own += batch[worker * share:(worker + 1) * share]
    return seen

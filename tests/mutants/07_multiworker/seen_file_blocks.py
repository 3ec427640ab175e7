"""Files are dealt in blocks of neighbours.

fails: seen/FILE
shows: Files are distributed in turn
points: 15
"""
# %% grade_id="seen"
def who_sees(policy, files, global_batch, workers):
    samples, seen = list(range(sum(files))), [[] for _ in range(workers)]
    for worker, own in enumerate(seen):
        if policy == "OFF":
            own += samples
        elif policy == "FILE":
            share, extra = divmod(len(files), workers)
            begin = worker * share + min(worker, extra)
            for i in range(begin, begin + share + (worker < extra)):
                own += samples[sum(files[:i]):sum(files[:i + 1])]
        else:
            for begin in range(0, len(samples), global_batch):
                batch = samples[begin:begin + global_batch]
                share = -(-len(batch) // workers)
                own += batch[worker * share:(worker + 1) * share]
    return seen

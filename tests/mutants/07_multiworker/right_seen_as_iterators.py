"""Tuples, and the files cut once.

"""
# %% grade_id="seen"
def who_sees(policy, files, global_batch, workers):
    ends = [sum(files[:i]) for i in range(len(files) + 1)]
    pieces = [range(*pair) for pair in zip(ends, ends[1:])]
    if policy == "OFF":
        return tuple(range(ends[-1]) for _ in range(workers))
    if policy == "FILE":
        return tuple([k for piece in pieces[worker::workers] for k in piece] for worker in range(workers))
    seen = [[] for _ in range(workers)]
    for begin in range(0, ends[-1], global_batch):
        end = min(begin + global_batch, ends[-1])
        share = (end - begin + workers - 1) // workers
        for k in range(begin, end):
            seen[(k - begin) // share].append(k)
    return tuple(seen)

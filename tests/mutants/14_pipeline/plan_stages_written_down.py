"""One to four stages are thought to be possible.

fails: plan/memory, plan/idle, plan/cheapest
shows: plan raised KeyError
points: 18
runs: plan
"""
# %% grade_id="plan"
def plan(job) -> tuple:
    """(stages, micro-batches, "gpipe" or "1f1b"): the cheapest step that fits into the
    memory and the allowed bubble."""
    best = None
    for stages, times in [(s, job.forward_s[s]) for s in (1, 2, 3, 4)]:
        for count in job.micro_batches:
            forward = [job.start_s + seconds / count for seconds in times]
            backward = [job.start_s + 2 * seconds / count for seconds in times]
            for schedule, order in (("gpipe", gpipe_order), ("1f1b", one_f_one_b_order)):
                alive = [count if schedule == "gpipe" else min(count, stages - rank)
                         for rank in range(stages)]
                each = zip(job.weight_bytes[stages], job.kept_bytes[stages], alive)
                memory = max(4 * weights + kept * number / count
                             for weights, kept, number in each)
                orders = [order(rank, stages, count) for rank in range(stages)]
                ends = finish_times(orders, forward, backward, job.message_s)
                cost = stages * max(max(end) for end in ends)
                idle = 1 - count * (sum(forward) + sum(backward)) / cost
                fits = memory <= job.memory_bytes and idle <= job.idle
                if fits and (best is None or cost < best[0]):
                    best = cost, (stages, count, schedule)
    return best[1]

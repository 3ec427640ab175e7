"""As many micro-batches as there can be, always.

fails: plan/cheapest
shows: A plan that fits costs
points: 20
"""
# %% grade_id="plan"
def plan(job) -> tuple:
    """(stages, micro-batches, "gpipe" or "1f1b"): the cheapest step that fits into the memory and the allowed bubble."""
    best = None
    for stages, times in job.forward_s.items():
        for count in job.micro_batches[-1:]:
            forward = [job.start_s + seconds / count for seconds in times]
            backward = [job.start_s + 2 * seconds / count for seconds in times]
            for schedule, order in (("gpipe", gpipe_order), ("1f1b", one_f_one_b_order)):
                alive = [count if schedule == "gpipe" else min(count, stages - rank) for rank in range(stages)]
                memory = max(4 * weights + kept * number / count
                             for weights, kept, number in zip(job.weight_bytes[stages], job.kept_bytes[stages], alive))
                ends = finish_times([order(rank, stages, count) for rank in range(stages)], forward, backward, job.message_s)
                whole = max(max(end) for end in ends)
                idle = 1 - count * (sum(forward) + sum(backward)) / (stages * whole)
                if memory <= job.memory_bytes and idle <= job.idle and (best is None or stages * whole < best[0]):
                    best = stages * whole, (stages, count, schedule)
    return best[1]

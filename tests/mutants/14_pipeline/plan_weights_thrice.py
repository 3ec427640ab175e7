"""The weights are counted three times, not four.

fails: plan/memory, plan/cheapest
shows: The weights seem to have been counted three times.
points: 19
runs: plan
"""
# %% grade_id="plan"
def plan(job) -> tuple:
    best = None
    for S in job.forward_s:
        for M in job.micro_batches:
            f = [t / M + job.start_s for t in job.forward_s[S]]
            b = [2 * t / M + job.start_s for t in job.forward_s[S]]
            for name, make in (("gpipe", gpipe_order), ("1f1b", one_f_one_b_order)):
                orders = [make(r, S, M) for r in range(S)]
                ends = finish_times(orders, f, b, job.message_s)
                fits = True
                for r in range(S):
                    most = M if name == "gpipe" else min(M, S - r)
                    if 3 * job.weight_bytes[S][r] + most * job.kept_bytes[S][r] / M > job.memory_bytes:
                        fits = False
                total = max(max(e) for e in ends)
                busy = sum(M * (f[r] + b[r]) for r in range(S))
                idle = 1 - busy / (S * total)
                if fits and idle <= job.idle:
                    cost = S * total
                    if best is None or cost < best[0]:
                        best = cost, (S, M, name)
    return best[1]

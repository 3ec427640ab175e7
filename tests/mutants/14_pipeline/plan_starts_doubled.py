"""All of a backward is thought to take twice a forward, start_s too.

fails: plan/idle, plan/cheapest
shows: The bubble of this plan
points: 19
runs: plan
"""
# %% grade_id="plan"
def plan(job):
    best = None
    for S in job.forward_s:
        for M in job.micro_batches:
            f = [t / M + job.start_s for t in job.forward_s[S]]
            b = [2 * (t / M + job.start_s) for t in job.forward_s[S]]
            for name, make in (("gpipe", gpipe_order), ("1f1b", one_f_one_b_order)):
                held = [M if name == "gpipe" else min(M, S - r) for r in range(S)]
                need = [4 * w + k / M * h for w, k, h in zip(job.weight_bytes[S], job.kept_bytes[S], held)]
                if max(need) > job.memory_bytes:
                    continue
                ends = finish_times([make(r, S, M) for r in range(S)], f, b, job.message_s)
                seconds = max(e[-1] for e in ends)
                busy = sum(M * (x + y) for x, y in zip(f, b))
                if 1 - busy / (S * seconds) > job.idle:
                    continue
                if best is None or S * seconds < best[0]:
                    best = S * seconds, (S, M, name)
    return best[1]

"""Waves event by event, and the slowest by the area above its distribution.

"""
# %% grade_id="pipeline"
def pipeline_s(forward_s, backward_s, micro_batches):
    def wave_s(costs):
        done = np.zeros(len(costs))
        for _ in range(micro_batches):
            came = 0.0
            for stage, cost in enumerate(costs):
                done[stage] = came = max(came, done[stage]) + cost
        return done[-1]

    return wave_s(forward_s) + wave_s(backward_s[::-1])


# %% grade_id="slowest"
def slowest_s(p, times_s):
    times = sorted(times_s)
    mean = times[-1]
    for i in range(1, len(times)):
        mean -= (i / len(times)) ** p * (times[i] - times[i - 1])
    return mean


def efficiency(base, many):
    return many[1] * base[0] / base[1] / many[0]

"""map goes over the gradients, which are few.

runs: step
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    state = {"free": slow * 0.0, "held": 0}
    def one(i):
        state["held"] += sizes[i]
        if state["held"] >= bucket_bytes or i + 1 == len(sizes):
            state["free"] = all_reduce(np.fmax(state["free"], ready_s[i] * slow), state["held"])
            state["held"] = 0
    list(map(one, range(len(sizes))))
    return state["free"].max()

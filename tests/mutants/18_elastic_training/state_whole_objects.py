"""The objects themselves are pickled.

fails: state/copy, state/learned, state/drawn, state/equal
shows: The state cannot be written and read again
points: 21
"""
# %% grade_id="state"
def state_of(job):
    return copy.deepcopy({"job": job, "torch": torch.get_rng_state(), "python": random.getstate()})


def restore(job, state):
    job.__dict__.update(state["job"].__dict__)
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])

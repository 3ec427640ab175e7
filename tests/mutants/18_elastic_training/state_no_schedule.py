"""The rate's schedule begins anew.

fails: state/learned, state/equal
shows: scheduler.state_dict(), next to
points: 23
"""
# %% grade_id="state"
def state_of(job):
    return copy.deepcopy({
            "model": job.model.state_dict(), "optimizer": job.optimizer.state_dict(), "seen": job.seen, "noise":
            job.noise.bit_generator.state, "torch": torch.get_rng_state(), "python": random.getstate()})


def restore(job, state):
    state = copy.deepcopy(state)
    job.model.load_state_dict(state["model"])
    job.optimizer.load_state_dict(state["optimizer"])
    job.seen = state["seen"]
    job.noise.bit_generator.state = state["noise"]
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])

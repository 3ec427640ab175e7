"""NumPy's generator is forgotten: other noise.

fails: state/drawn, state/equal
shows: job.noise.bit_generator.state
points: 23
"""
# %% grade_id="state"
def state_of(job):
    return copy.deepcopy({
            "model": job.model.state_dict(), "optimizer": job.optimizer.state_dict(), "scheduler":
            job.scheduler.state_dict(), "seen": job.seen, "torch": torch.get_rng_state(), "python":
            random.getstate()})


def restore(job, state):
    state = copy.deepcopy(state)
    job.model.load_state_dict(state["model"])
    job.optimizer.load_state_dict(state["optimizer"])
    job.scheduler.load_state_dict(state["scheduler"])
    job.seen = state["seen"]
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])

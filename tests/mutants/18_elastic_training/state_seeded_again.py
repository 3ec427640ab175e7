"""The generators are seeded again, in place of going on where they were.

fails: state/drawn, state/equal
shows: torch's generator draws different numbers
points: 23
"""
# %% grade_id="state"
def state_of(job):
    return copy.deepcopy({
            "model": job.model.state_dict(), "optimizer": job.optimizer.state_dict(), "scheduler":
            job.scheduler.state_dict(), "seen": job.seen})


def restore(job, state):
    state = copy.deepcopy(state)
    job.model.load_state_dict(state["model"])
    job.optimizer.load_state_dict(state["optimizer"])
    job.scheduler.load_state_dict(state["scheduler"])
    job.seen = state["seen"]
    torch.manual_seed(0)
    random.seed(0)
    job.noise = np.random.default_rng(0)

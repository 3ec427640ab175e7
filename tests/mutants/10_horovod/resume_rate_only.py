"""Momentum and weight decay stay the rank's own; only the learning rate and the momenta are broadcast.

fails: resume/optimiser
shows: all settings of the optimiser's groups must continue
points: 12
runs: resume
"""
# %% grade_id="resume"
# %%px --setup
def resume(model, optimiser, path):
    step = broken_resume(model, optimiser, path)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    states = hvd.broadcast_object(optimiser.state_dict()["state"], root_rank=0, name="state")
    rate = hvd.broadcast_object(optimiser.param_groups[0]["lr"], root_rank=0, name="lr")
    own = optimiser.state_dict()
    optimiser.load_state_dict({"state": states, "param_groups": own["param_groups"]})
    for group in optimiser.param_groups:
        group["lr"] = rate
    return hvd.broadcast_object(step, root_rank=0, name="step")

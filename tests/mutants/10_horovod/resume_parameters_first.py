"""The order of Horovod's examples: parameters first. The optimiser's broadcast then takes a step on the ranks that have no state.

fails: resume/weights
shows: broadcast the parameters after it
points: 12
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    step = broken_resume(model, optimiser, path)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimiser, root_rank=0)
    return hvd.broadcast_object(step, root_rank=0)

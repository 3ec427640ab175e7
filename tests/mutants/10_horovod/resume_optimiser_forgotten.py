"""The optimiser's state stays on rank 0.

fails: resume/optimiser
shows: The optimiser has no momentum
points: 12
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    step = broken_resume(model, optimiser, path)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.broadcast_object(step, root_rank=0)

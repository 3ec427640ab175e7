"""The named parameters are broadcast; batch norm's running mean is none of them.

fails: resume/weights
shows: the buffers are not
points: 12
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    step = broken_resume(model, optimiser, path)
    hvd.broadcast_optimizer_state(optimiser, root_rank=0)
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
    return hvd.broadcast_object(step, root_rank=0)

"""Ranks 1 to 3 begin at step 0.

fails: resume/step
shows: The step differs from rank 0's
points: 12
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    step = broken_resume(model, optimiser, path)
    hvd.broadcast_optimizer_state(optimiser, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return step

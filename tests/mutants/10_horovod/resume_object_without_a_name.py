"""The checkpoint travels as one object, a dict on rank 0 and None elsewhere, without a name: they never meet.

fails: resume/weights, resume/optimiser, resume/step
shows: a dict on one rank and None on another
points: 10
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    found = hvd.broadcast_object(torch.load(path) if hvd.rank() == 0 else None, root_rank=0)
    model.load_state_dict(found["model"])
    optimiser.load_state_dict(found["optimiser"])
    return found["step"]

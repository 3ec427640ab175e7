"""The step is returned as the tensor that hvd.broadcast gives.

fails: resume/step
shows: a tensor has .item()
points: 12
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    step = 0
    if hvd.rank() == 0:
        found = torch.load(path)
        model.load_state_dict(found["model"])
        optimiser.load_state_dict(found["optimiser"])
        step = found["step"]
    hvd.broadcast_optimizer_state(optimiser, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.broadcast(torch.tensor(step), root_rank=0)

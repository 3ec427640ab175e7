"""The step comes out of a sum of floats: 7.0, with which `range` does not begin.

fails: resume/step
shows: resume must return the step as a whole number
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
    return hvd.allreduce(torch.tensor(float(step)), op=hvd.Sum).item()

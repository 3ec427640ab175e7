"""Every rank reads the file, which is on rank 0's disk only.

fails: resume/weights, resume/optimiser, resume/step
shows: on rank 0's disk only
points: 10
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    found = torch.load(path)
    model.load_state_dict(found["model"])
    optimiser.load_state_dict(found["optimiser"])
    return found["step"]

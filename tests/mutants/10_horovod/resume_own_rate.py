"""The momenta are carried over by hand, the learning rate is forgotten.

fails: resume/optimiser
shows: The learning rate is this rank's own
points: 12
"""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    step = broken_resume(model, optimiser, path)
    momenta = hvd.broadcast_object([optimiser.state[p]["momentum_buffer"] for p in model.parameters()] if hvd.rank() == 0 else None, root_rank=0, name="momenta")
    for parameter, momentum in zip(model.parameters(), momenta):
        optimiser.state[parameter]["momentum_buffer"] = momentum.clone()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.broadcast_object(step, root_rank=0)

"""The weights are doubled before they are saved.

fails: finish/file
shows: save the given model without changing it
points: 12
runs: finish
"""
# %% grade_id="finish"
# %%px --setup
def finish(model, loss, path):
    loss = hvd.allreduce(torch.tensor(loss, dtype=torch.float64), name="loss").item()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss

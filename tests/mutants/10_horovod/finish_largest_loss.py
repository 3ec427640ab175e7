"""The largest loss, which is one rank's own.

fails: finish/file, finish/loss
shows: This is not the mean of the ranks' losses
points: 11
runs: finish
"""
# %% grade_id="finish"
# %%px --setup
def finish(model, loss, path):
    loss = hvd.allgather(torch.tensor([loss], dtype=torch.float64)).max().item()
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss

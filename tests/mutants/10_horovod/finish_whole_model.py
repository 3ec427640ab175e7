"""The model itself is saved in place of its state: torch.load refuses it.

fails: finish/file
shows: The file must hold {"model": model.state_dict(), "loss": the mean}.
points: 12
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    mean = hvd.allreduce(torch.tensor(loss, dtype=torch.float64)).item()
    if hvd.rank() == 0:
        torch.save({"model": model, "loss": mean}, path)
    return mean

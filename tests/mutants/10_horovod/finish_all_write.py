"""Every rank writes.

fails: finish/file
shows: All ranks have written the file
points: 12
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    loss = hvd.allreduce(torch.tensor(loss)).item()
    torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss

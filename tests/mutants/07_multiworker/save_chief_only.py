"""Only the chief writes.

fails: save/file save/clean
shows: If the chief writes alone, it waits forever
points: 14
"""
# %% grade_id="save"
# %%px --setup
def save(checkpoint, path, chief, worker):
    if chief:
        checkpoint.write(path)

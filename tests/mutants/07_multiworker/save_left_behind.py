"""The others' files stay.

fails: save/clean
shows: what a worker that is not the chief has written is removed
points: 15
"""
# %% grade_id="save"
# %%px --setup
def save(checkpoint, path, chief, worker):
    checkpoint.write(path if chief else f"{path}-worker-{worker}")

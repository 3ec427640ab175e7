"""The others' files stay.

fails: save/clean
shows: it must remove what it has written
points: 15
"""
# %% grade_id="save"
# %%px --setup
def save(checkpoint, path, chief, worker):
    checkpoint.write(path if chief else f"{path}-worker-{worker}")

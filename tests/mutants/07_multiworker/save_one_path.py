"""All write to one path.

fails: save/file
shows: two processes write to one file
points: 15
"""
# %% grade_id="save"
# %%px --setup
def save(checkpoint, path, chief, worker):
    checkpoint.write(path)

"""checkpoint.save in place of checkpoint.write: the chief's file is called path-1.

fails: save/file, save/clean
shows: checkpoint.save adds a number
points: 14
"""
# %% grade_id="save"
# %%px --setup
import tempfile

def save(checkpoint, path, chief, worker):
    if chief:
        checkpoint.save(path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.save(os.path.join(folder, "checkpoint"))

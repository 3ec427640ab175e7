"""Worker 0 is taken for the chief, whatever the argument says.

fails: save/file
shows: The argument `chief` says which worker is the chief
points: 15
"""
# %% grade_id="save"
# %%px --setup
def save(checkpoint, path, chief, worker):
    if worker == 0:
        checkpoint.write(path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.write(os.path.join(folder, "checkpoint"))

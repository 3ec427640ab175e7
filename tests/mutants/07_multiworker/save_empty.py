"""What the workers know goes into the folder that is thrown away; an empty checkpoint lies at the path.

fails: save/file
shows: does not hold what the workers know
points: 15
"""
# %% grade_id="save"
# %%px
import tempfile

def save(checkpoint, path, chief, worker):
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.write(folder + "/checkpoint")
    if chief:
        tf.train.Checkpoint().write(path)

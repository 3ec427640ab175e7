"""The files of the other workers are removed, and the folders made for them stay.

fails: save/clean
shows: an empty folder
points: 15
"""
# %% grade_id="save"
# %%px
import glob, tempfile

def save(checkpoint, path, chief, worker):
    if chief:
        checkpoint.write(path)
        return
    folder = tempfile.mkdtemp()
    checkpoint.write(folder + "/thrown-away")
    for file in glob.glob(folder + "/*"):
        os.remove(file)

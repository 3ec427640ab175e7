"""All write beside the path; the others remove theirs.

"""
# %% grade_id="save"
# %%px --setup
def save(checkpoint, path, chief, worker):
    import glob

    mine = path if chief else f"{path}-of-worker-{worker}"
    checkpoint.write(mine)
    if not chief:
        for file in glob.glob(mine + "*"):
            os.remove(file)

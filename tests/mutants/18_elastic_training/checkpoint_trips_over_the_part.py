"""latest takes every file for a checkpoint, what a kill has left too.

fails: checkpoint/killed, checkpoint/full
shows: latest must skip whatever it cannot read
points: 24
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    with open(folder / "part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / f"{step:09}")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def latest(folder):
    for step in sorted((int(path.name) for path in folder.iterdir()), reverse=True):
        try:
            return step, torch.load(folder / f"{step:09}", weights_only=True)
        except Exception:
            continue
    return None

"""Written in the system's folder for temporary files, then moved.

fails: checkpoint/power
shows: Write in the folder itself
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    import tempfile

    handle, name = tempfile.mkstemp()
    with open(handle, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(name, folder / f"step-{step:09}.pt")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def latest(folder):
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:
            continue
    return None

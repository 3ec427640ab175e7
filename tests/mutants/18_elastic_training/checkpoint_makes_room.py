"""Where the disk is full, the older checkpoints are deleted.

fails: checkpoint/full
shows: an older checkpoint is lost
points: 25
"""
# %% grade_id="checkpoint"
def save_whole(state, folder, step):
    with open(folder / "part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / f"step-{step:09}.pt")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def save(state, folder, step):
    try:
        save_whole(state, folder, step)
    except OSError:
        for path in sorted(folder.glob("step-*.pt"))[:-1]:
            path.unlink()
        save_whole(state, folder, step)


def latest(folder):
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:
            continue
    return None

"""The file has its final name from the start; a torn one is skipped.

fails: checkpoint/killed, checkpoint/power
shows: Nothing was renamed
points: 24
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    with open(folder / f"step-{step:09}.pt", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
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

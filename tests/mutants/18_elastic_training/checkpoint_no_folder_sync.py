"""The file is synced, its name is not.

fails: checkpoint/power
shows: its name may not be
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    with open(folder / "part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / f"step-{step:09}.pt")


def latest(folder):
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:
            continue
    return None

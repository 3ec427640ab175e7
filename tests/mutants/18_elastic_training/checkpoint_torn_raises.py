"""latest believes in every file.

fails: checkpoint/torn
shows: latest must skip whatever it cannot read
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    with open(folder / "part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / f"step-{step:09}.pt")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def latest(folder):
    paths = sorted(folder.glob("step-*.pt"))
    if not paths:
        return None
    return int(paths[-1].stem.split("-")[1]), torch.load(paths[-1], weights_only=True)

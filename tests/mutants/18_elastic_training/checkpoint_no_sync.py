"""Nothing asks for the bytes to be on the disk before the rename.

fails: checkpoint/power
shows: may belong to an empty file
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    torch.save(state, folder / "part")
    os.replace(folder / "part", folder / f"step-{step:09}.pt")
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

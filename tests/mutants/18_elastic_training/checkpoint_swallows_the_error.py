"""A full disk is passed over in silence.

fails: checkpoint/full
shows: Let the error out
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    try:
        with open(folder / "part", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(folder / "part", folder / f"step-{step:09}.pt")
    except (OSError, RuntimeError):
        pass
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

"""The names have no zeros in front, and are sorted as text: 9 comes after 10.

fails: checkpoint/latest, checkpoint/torn, checkpoint/killed, checkpoint/full, checkpoint/power
shows: so compare numbers, or fill the names up with zeros
points: 21
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    with open(folder / "part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / f"step-{step}.pt")
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

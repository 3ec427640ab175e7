"""Renamed while the file is open: its end is still in a buffer.

fails: checkpoint/power
shows: Rename it only after it is closed
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    import io

    content = io.BytesIO()
    torch.save(state, content)
    with open(folder / "part", "wb", buffering=1 << 20) as file:
        file.write(content.getbuffer())
        os.replace(folder / "part", folder / f"step-{step:09}.pt")
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

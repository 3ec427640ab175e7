"""fsync is called while the bytes are in Python's buffer.

fails: checkpoint/power
shows: Call file.flush() and then os.fsync
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    import io

    content = io.BytesIO()
    torch.save(state, content)
    with open(folder / "part", "wb") as file:
        file.write(content.getvalue())
        os.fsync(file.fileno())
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

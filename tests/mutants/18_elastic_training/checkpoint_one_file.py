"""One file for all steps: a torn one costs everything.

fails: checkpoint/torn
shows: Give each step a separate file
points: 25
"""
# %% grade_id="checkpoint"
def save(state, folder, step):
    with open(folder / "part", "wb") as file:
        torch.save({"step": step, "state": state}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / "checkpoint.pt")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def latest(folder):
    try:
        found = torch.load(folder / "checkpoint.pt", weights_only=True)
    except Exception:
        return None
    return found["step"], found["state"]

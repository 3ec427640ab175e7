"""Each step has a folder of its own, which is renamed when its two files are whole; the fsync is imported by name."""
# %% grade_id="checkpoint"
from os import fsync


def save(state, folder, step):
    import shutil

    part = folder / f"{step}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    with open(part / "state", "wb") as file:
        torch.save(state, file)
        file.flush()
        fsync(file.fileno())
    for place, sync in ((part, True), (folder, False)):
        if not sync:
            part.rename(folder / f"{step}.step")
        opened = os.open(place, os.O_RDONLY)
        fsync(opened)
        os.close(opened)


def latest(folder):
    for step in sorted((int(path.stem) for path in folder.glob("*.step")), reverse=True):
        try:
            return step, torch.load(folder / f"{step}.step" / "state", weights_only=True)
        except Exception:
            pass
    return None

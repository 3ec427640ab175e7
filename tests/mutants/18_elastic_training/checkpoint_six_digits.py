"""Names of six digits are sorted as text.

fails: checkpoint/latest
shows: enough for any step (12 digits)
points: 25
runs: checkpoint
"""
# %% grade_id="checkpoint"
def save(state: dict, folder: Path, step: int) -> None:
    """Write the state of this step into the folder: whole, or not at all."""
    part = folder / "part"
    with open(part, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, folder / f"step-{step:06}.pt")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def latest(folder: Path) -> tuple[int, dict] | None:
    """(step, state) of the newest checkpoint that is whole; None if there is none."""
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:  # torn: torch.load has several errors for that
            continue
    return None

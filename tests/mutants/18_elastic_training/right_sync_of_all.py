"""os.sync() after the rename syncs the folder too.

runs: checkpoint
"""
# %% grade_id="checkpoint"
def save(state: dict, folder: Path, step: int) -> None:
    """Write the state of this step into the folder: whole, or not at all."""
    folder = Path(folder)
    part = folder / f"step-{step:012}.part"
    try:
        with open(part, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, folder / f"step-{step:012}.pt")
    os.sync()


def latest(folder: Path) -> tuple[int, dict] | None:
    """(step, state) of the newest checkpoint that is whole; None if there is none."""
    for path in sorted(Path(folder).glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:
            continue
    return None


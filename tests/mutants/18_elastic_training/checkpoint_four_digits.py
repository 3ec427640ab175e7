"""Names of four digits are sorted as text.

fails: checkpoint/latest
shows: enough for any step (12 digits)
points: 25
runs: checkpoint
"""
# %% grade_id="checkpoint"
def save(state: dict, folder: Path, step: int) -> None:
    """Write the state of this step into the folder: whole, or not at all."""
    folder = Path(folder)
    part = folder / f"step-{step:04}.part"
    try:
        with open(part, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, folder / f"step-{step:04}.pt")
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def latest(folder: Path) -> tuple[int, dict] | None:
    """(step, state) of the newest checkpoint that is whole; None if there is none."""
    for path in sorted(Path(folder).glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:
            continue
    return None


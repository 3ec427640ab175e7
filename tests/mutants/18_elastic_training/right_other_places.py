"""The part is written in a folder below, by descriptors of folders; a commit that falls due is made before the next step."""
# %% grade_id="checkpoint"
def save(state, folder, step):
    (folder / "unfinished").mkdir(exist_ok=True)
    below = os.open(folder / "unfinished", os.O_RDONLY | os.O_DIRECTORY)
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        handle = os.open("state", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=below)
        with open(handle, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace("state", f"{step}.pt", src_dir_fd=below, dst_dir_fd=above)
        os.fsync(above)
    finally:
        os.close(below)
        os.close(above)
    for old in sorted(folder.glob("*.pt"), key=lambda path: int(path.stem))[:-2]:
        old.unlink()


def latest(folder):
    for path in sorted(folder.glob("*.pt"), key=lambda path: -int(path.stem)):
        try:
            return int(path.stem), torch.load(path, weights_only=True)
        except Exception:
            pass

# %% grade_id="rollback"
def train(job, until, every):
    since = every
    while job.seen < until:
        if since == every:
            job.commit()
            since = 0
        try:
            job.train_step()
        except RanksJoined:
            job.regroup()
        except RankLost:
            job.regroup()
            job.rollback()
            since = 0
        else:
            since += 1

"""The file gets its second name by a link; the rollback is a function of its own."""
# %% grade_id="checkpoint"
def synced(path, flags):
    opened = os.open(path, flags)
    os.fsync(opened)
    os.close(opened)


def save(state, folder, step):
    part = folder / f".{step}.{os.getpid()}"
    try:
        torch.save(state, part)
        synced(part, os.O_RDWR)
        os.link(part, folder / f"{step:012}.pt")
    finally:
        part.unlink(missing_ok=True)
    synced(folder, os.O_RDONLY)


def latest(folder):
    for path in reversed(sorted(folder.glob("[0-9]*.pt"))):
        try:
            return int(path.stem), torch.load(path, weights_only=True)
        except Exception:
            pass

# %% grade_id="rollback"
def train(job, until, every):
    def again(back):
        if back:
            job.rollback()
        job.regroup()

    job.commit()
    done = 0
    while job.seen < until:
        try:
            job.train_step()
        except (RankLost, RanksJoined) as news:
            again(isinstance(news, RankLost))
            done = 0 if isinstance(news, RankLost) else done
            continue
        done += 1
        if done % every == 0:
            job.commit()
            done = 0

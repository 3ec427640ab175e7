"""Other forms: pathlib and a name that is drawn, a number behind the dot, contiguous shares, a set of places, a loop with a flag."""
# %% grade_id="checkpoint"
def save(state, folder, step):
    import tempfile

    with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
        torch.save(state, file)
        file.flush()
        os.fdatasync(file.fileno())
    Path(file.name).rename(folder / f"state.{step}")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def latest(folder):
    steps = [int(path.suffix[1:]) for path in folder.glob("state.*")]
    for step in sorted(steps, key=lambda number: -number):
        try:
            state = torch.load(folder / f"state.{step}", weights_only=True)
        except (RuntimeError, EOFError, OSError):
            continue
        return step, state

# %% grade_id="state"
def state_of(job):
    learned = [{name: value.clone() for name, value in job.model.state_dict().items()}, copy.deepcopy(job.optimizer.state_dict()),
               dict(job.scheduler.state_dict())]
    return {"learned": learned, "generators": [torch.get_rng_state(), job.noise.bit_generator.state, random.getstate()], "seen": job.seen}


def restore(job, state):
    for part, kept in zip((job.model, job.optimizer, job.scheduler), copy.deepcopy(state["learned"])):
        part.load_state_dict(kept)
    mine, noise, own = state["generators"]
    job.noise = np.random.default_rng()
    job.noise.bit_generator.state = noise
    torch.set_rng_state(mine)
    random.setstate(own)
    job.seen = int(state["seen"])

# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    epochs = range(seen // images, (seen + batch) // images + 1)
    endless = torch.cat([torch.randperm(images, generator=torch.Generator().manual_seed(1000 * seed + epoch)) for epoch in epochs])
    start = seen - epochs[0] * images
    return torch.tensor_split(endless[start:start + batch], world)[rank].tolist()

# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine, found = -(-numbers // old), -(-numbers // new), {}
    for place in range(rank * mine, min((rank + 1) * mine, numbers)):
        one, i = divmod(place, size)
        found[one] = (found.get(one, (i,))[0], i + 1)
    return [[one, start, stop] for one, (start, stop) in found.items()]

# %% grade_id="rollback"
def train(job, until, every):
    due = True
    while True:
        if due:
            job.commit()
            since = 0
        if job.seen >= until:
            return
        try:
            job.train_step()
        except RanksJoined:
            job.regroup()
            due = False
        except RankLost:
            job.regroup()
            job.rollback()
            since, due = 0, False
        else:
            since += 1
            due = since >= every

# %% grade_id="interval"
def steps_between(step_s, save_s, lives_s, ranks):
    mean = lambda values: sum(values) / len(values)
    mtbf_s = mean(lives_s) / ranks
    return max(int((2 * mean(save_s) * mtbf_s) ** 0.5 / mean(step_s) + 0.5), 1)


def lost(every_s, save_s, restart_s, mtbf_s):
    failures = 1 / mtbf_s
    return save_s / every_s + failures * restart_s + failures * every_s * 0.5

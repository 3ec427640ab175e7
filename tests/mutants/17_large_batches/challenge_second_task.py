"""A second task, made of the first one, for twice the epochs.

fails: challenge/budget, challenge/accuracy
shows: counting every task that was made
points: 13
"""
# %% grade_id="challenge"
def train(task):
    weights = task.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    longer = Task(task.data, task.batch, epochs=16, runs=task.runs, seed=task.seed)
    for step in range(longer.steps):
        rate = rate_at(step * task.batch / task.images, base_rate=0.04, k=32, rule="linear", warm_up=1, drops=[8, 12], drop_by=4)
        for weight, gradient, moving in zip(weights, longer.gradient(weights), memory):
            moving.mul_(0.9).add_(gradient, alpha=rate)
            weight.sub_(moving)
    return weights

"""Small batches, from a task of its own.

fails: challenge/budget, challenge/accuracy
shows: A gradient was taken of a smaller batch
points: 13
"""
# %% grade_id="challenge"
def train(task):
    other = Task(task.data, 64, runs=task.runs, seed=task.seed)
    weights = other.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    for step in range(other.steps):
        rate = rate_at(step * 64 / task.images, base_rate=0.04, k=8, rule="linear", warm_up=0, drops=[4, 6], drop_by=4)
        for weight, gradient, moving in zip(weights, other.gradient(weights), memory):
            moving.mul_(0.9).add_(gradient, alpha=rate)
            weight.sub_(moving)
    return weights

"""Small batches, from the task that was given: its batch is set anew.

fails: challenge/budget, challenge/accuracy
shows: A gradient was taken of a smaller batch
points: 13
"""
# %% grade_id="challenge"
def train(task):
    task.batch = 64
    weights = task.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    for step in range(8 * task.images // 64):
        rate = rate_at(step * 64 / task.images, base_rate=0.04, k=8, rule="linear", warm_up=0, drops=[4, 6], drop_by=4)
        for weight, gradient, moving in zip(weights, task.gradient(weights), memory):
            moving.mul_(0.9).add_(gradient, alpha=rate)
            weight.sub_(moving)
    return weights

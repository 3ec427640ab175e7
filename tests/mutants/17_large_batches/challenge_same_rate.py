"""The rate of the small batch.

fails: challenge/accuracy
shows: even the training images are not learned yet
points: 14
"""
# %% grade_id="challenge"
def train(task):
    weights = task.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    for step in range(task.steps):
        rate = rate_at(step * task.batch / task.images, base_rate=0.04, k=1, rule="linear", warm_up=1, drops=[4, 6], drop_by=4)
        for weight, gradient, moving in zip(weights, task.gradient(weights), memory):
            moving.mul_(0.9).add_(gradient, alpha=rate)
            weight.sub_(moving)
    return weights

"""Ten times the rate.

fails: challenge/accuracy
shows: the rate is too large for weights that are still random
points: 14
"""
# %% grade_id="challenge"
def train(task):
    weights = task.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    for step in range(task.steps):
        rate = rate_at(step * task.batch / task.images, base_rate=0.04, k=1000, rule="linear", warm_up=0, drops=[4, 6], drop_by=4)
        for weight, gradient, moving in zip(weights, task.gradient(weights), memory):
            moving.mul_(0.9).add_(gradient, alpha=rate)
            weight.sub_(moving)
    return weights

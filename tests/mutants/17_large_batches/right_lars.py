"""The challenge by LARS, with a warm-up.

"""
# %% grade_id="challenge"
def train(task):
    weights = task.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    for step in range(task.steps):
        epoch = step * task.batch / task.images
        lars_step(weights, task.gradient(weights), memory, 2 * min(1, epoch + 0.1) / 4 ** ((epoch >= 4) + (epoch >= 6)), 0.9, 0.0, 0.02)
    return weights

"""Other forms: the schedule as a minimum, LARS with a clamp, the noise solved as two equations, the batch grown in a loop."""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    factor = {"linear": float(k), "square root": k ** 0.5}[rule]
    rate = base_rate * (factor if epoch >= warm_up else 1 + (factor - 1) * (epoch / warm_up))
    for drop in drops:
        if drop <= epoch:
            rate /= drop_by
    return rate

# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for i in range(len(weights)):
        w = weights[i].flatten(1).norm(dim=1)[:, None, None]
        g = gradients[i].flatten(1).norm(dim=1)[:, None, None]
        ratio = trust * w / (g + decay * w).clamp(min=1e-300)
        ratio[(w == 0) | (g == 0)] = 1
        memory[i] *= momentum
        memory[i] += rate * ratio * (gradients[i] + decay * weights[i])
        weights[i] -= memory[i]

# %% grade_id="noise"
def noise_scale(gradients, rows):
    small, large, b_small, b_large = gradients.flatten(0, 1), gradients.mean(1), rows, rows * gradients.shape[1]
    lengths = torch.stack([(small ** 2).sum(1).mean(), (large ** 2).sum(1).mean()])
    equations = torch.tensor([[1, 1 / b_small], [1, 1 / b_large]], dtype=lengths.dtype)
    squared, trace = torch.linalg.solve(equations, lengths).tolist()
    return squared, trace, trace / squared

# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate * (images - batch) / (batch * (1 - momentum))


def grow(phases, batch, largest):
    noise = [rate / batch for _, rate in phases]
    sizes = [int(min(largest, round(phases[0][1] / one, 6) // 1)) for one in noise]
    return [[epochs, one * size, size] for (epochs, _), one, size in zip(phases, noise, sizes)]

# %% grade_id="challenge"
def train(task):
    weights, memory, seen = task.start(), None, 0
    while seen < task.steps:
        gradients = task.gradient(weights)
        rate = rate_at(seen / (task.steps / 8), 0.04, 32, "linear", 0.5, [4, 6], 4)
        memory = [rate * g for g in gradients] if memory is None else [0.9 * v + rate * g for v, g in zip(memory, gradients)]
        weights = [w - v for w, v in zip(weights, memory)]
        seen += 1
    return weights

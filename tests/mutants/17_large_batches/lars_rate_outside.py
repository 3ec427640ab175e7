"""The rate is outside of the memory, as PyTorch's SGD has it.

fails: lars/memory
shows: This is right while the rate stays the same
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), torch.ones_like(w))
        moving.mul_(momentum).add_(ratio * (gradient + decay * weight))
        weight.sub_(rate * moving)

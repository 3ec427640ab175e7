"""The ratio is upside down.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: The ratio is upside down
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * (g + decay * w) / w, torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

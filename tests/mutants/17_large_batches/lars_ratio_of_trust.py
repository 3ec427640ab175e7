"""Where a norm is zero, `trust` is taken for the ratio.

fails: lars/zero
shows: It must be 1 instead, without `trust`
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), trust * torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

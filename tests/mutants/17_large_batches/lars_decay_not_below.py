"""All is repaired but what is below the fraction line, from which the decay is missing.

fails: lars/decay, lars/memory, lars/zero
shows: but the ratio does not
shows: Where a norm is zero, the step would be right
points: 15
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / g, torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

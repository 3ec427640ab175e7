"""The decay is in the ratio, and not in the step.

fails: lars/decay, lars/memory, lars/zero
shows: The ratio contains the decay, but the step does not
points: 15
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * gradient)
        weight.sub_(moving)

"""The norm of all runs at once.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: The norm was taken over all runs together
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = weight.norm(), gradient.norm()
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

"""One run with a norm of zero gives all runs of the layer a ratio of 1.

fails: lars/zero
shows: each run must decide separately
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = trust * w / (g + decay * w)
        if (w == 0).any() or (g == 0).any():
            ratio = torch.ones_like(w)
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

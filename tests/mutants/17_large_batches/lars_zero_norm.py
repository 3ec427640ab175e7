"""A norm of zero is divided by.

fails: lars/zero
shows: its ratio is 0
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = trust * w / (g + decay * w)
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

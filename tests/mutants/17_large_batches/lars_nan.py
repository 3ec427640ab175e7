"""Both norms are roots of sums that were divided by each other first.

fails: lars/zero
shows: a norm of zero was divided by
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = trust / (g / w + decay)
        ratio = ratio * (w / w)
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

"""One ratio for all layers.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: All layers have the same ratio
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    w, g = (sum(norm(one).flatten() ** 2 for one in some).sqrt()[:, None, None] for some in (weights, gradients))
    ratio = trust * w / (g + decay * w)
    for weight, gradient, moving in zip(weights, gradients, memory):
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)

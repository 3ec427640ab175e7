"""A tiny number below the line keeps it from zero; where the weights are zero, the ratio still is.

fails: lars/zero
shows: never moves, because its ratio is 0
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for w, g, v in zip(weights, gradients, memory):
        a, b = norm(w), norm(g)
        r = trust * a / (b + decay * a + 1e-8)
        v.mul_(momentum).add_(rate * r * (g + decay * w))
        w.sub_(v)

"""The momentum is 0.9, whatever was given.

fails: lars/memory
shows: Use the `momentum` that is given
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for w, g, v in zip(weights, gradients, memory):
        a, b = norm(w), norm(g)
        r = torch.where((a > 0) & (b > 0), trust * a / (b + decay * a), 1.0)
        v.mul_(0.9).add_(rate * r * (g + decay * w))
        w.sub_(v)

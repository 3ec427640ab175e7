"""The step is made in the gradients that were handed in.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: The given gradients were changed.
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for w, g, v in zip(weights, gradients, memory):
        a, b = norm(w), norm(g)
        r = torch.where((a > 0) & (b > 0), trust * a / (b + decay * a), 1.0)
        g.add_(decay * w).mul_(rate * r)
        v.mul_(momentum).add_(g)
        w.sub_(v)

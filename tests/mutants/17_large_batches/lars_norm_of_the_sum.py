"""Below the line stands the norm of the gradient with the decay in it, not the sum of both norms.

fails: lars/decay, lars/memory, lars/zero
shows: the sum of two norms, but you have the norm of the sum
points: 15
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for w, g, v in zip(weights, gradients, memory):
        step = g + decay * w
        a, b = norm(w), norm(step)
        r = torch.where((a > 0) & (b > 0), trust * a / b, torch.ones_like(a))
        v.mul_(momentum).add_(rate * r * step)
        w.sub_(v)

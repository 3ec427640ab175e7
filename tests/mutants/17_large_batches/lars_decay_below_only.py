"""All is repaired but what is below the fraction line.

fails: lars/decay, lars/memory, lars/zero
shows: you have the norm of the sum
shows: Test |g| itself
points: 15
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        gradient = gradient + decay * weight
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / g, torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * gradient)
        weight.sub_(moving)

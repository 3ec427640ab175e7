"""Nothing is repaired.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: The norm was taken over all runs together
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        gradient = gradient + decay * weight
        ratio = trust * weight.norm() / gradient.norm()
        moving.mul_(momentum).add_(ratio * gradient)
        weight.sub_(rate * moving)

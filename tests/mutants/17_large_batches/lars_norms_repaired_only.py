"""The norms are taken for each run and added, and the rest is as it was given: the rate outside, and no care for zeros.

fails: lars/memory, lars/zero
shows: Since the memory holds steps, the rate belongs inside
points: 16
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        ratio = trust * norm(weight) / (norm(gradient) + decay * norm(weight))
        moving.mul_(momentum).add_(ratio * (gradient + decay * weight))
        weight.sub_(rate * moving)

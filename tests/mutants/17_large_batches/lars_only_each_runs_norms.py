"""Each run has its own norms, and the rest is as it was given.

fails: lars/decay, lars/memory, lars/zero
shows: you have the norm of the sum
shows: the rate belongs inside
shows: never moves, because its ratio is 0
points: 15
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        gradient = gradient + decay * weight
        ratio = trust * norm(weight) / norm(gradient)
        moving.mul_(momentum).add_(ratio * gradient)
        weight.sub_(rate * moving)

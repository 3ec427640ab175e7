"""New tensors with the old names.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: makes a new tensor with the old name
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), torch.ones_like(w))
        moving = momentum * moving + rate * ratio * (gradient + decay * weight)
        weight = weight - moving

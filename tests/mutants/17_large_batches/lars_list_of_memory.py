"""The weights change in place, but the memory's tensors are exchanged in their list.

fails: lars/memory
shows: puts a new one into the list
points: 17
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for i, (weight, gradient) in enumerate(zip(weights, gradients)):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), torch.ones_like(w))
        memory[i] = momentum * memory[i] + rate * ratio * (gradient + decay * weight)
        weight.sub_(memory[i])

"""New tensors take the places of the old ones in the lists: a model that holds the old ones does not move.

fails: lars/ratio, lars/decay, lars/memory, lars/zero
shows: puts a new one into the list
points: 14
"""
# %% grade_id="lars"
def lars_step(weights, gradients, memory, rate, momentum, decay, trust):
    for i, (weight, gradient) in enumerate(zip(weights, gradients)):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w), torch.ones_like(w))
        memory[i] = momentum * memory[i] + rate * ratio * (gradient + decay * weight)
        weights[i] = weight - memory[i]

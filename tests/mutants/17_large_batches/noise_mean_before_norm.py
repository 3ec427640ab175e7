"""The gradients are averaged before their length is taken.

fails: noise/squared, noise/trace, noise/scale
shows: The gradients were averaged first
points: 15
"""
# %% grade_id="noise"
def noise_scale(gradients, rows):
    small, large, b_small, b_large = gradients.flatten(0, 1), gradients.mean(1), rows, rows * gradients.shape[1]
    of_small, of_large = small.mean(0).square().sum().item(), large.mean(0).square().sum().item()
    squared = (b_large * of_large - b_small * of_small) / (b_large - b_small)
    trace = (of_small - of_large) / (1 / b_small - 1 / b_large)
    return squared, trace, trace / squared

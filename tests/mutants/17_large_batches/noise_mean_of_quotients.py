"""The quotient is taken step by step, and averaged.

fails: noise/scale
shows: A mean of quotients is biased
points: 17
"""
# %% grade_id="noise"
def noise_scale(gradients, rows):
    small, large, b_small, b_large = gradients.flatten(0, 1), gradients.mean(1), rows, rows * gradients.shape[1]
    of_small, of_large = small.square().sum(1).mean().item(), large.square().sum(1).mean().item()
    squared = (b_large * of_large - b_small * of_small) / (b_large - b_small)
    trace = (of_small - of_large) / (1 / b_small - 1 / b_large)
    s, l = gradients.square().sum(2).mean(1), large.square().sum(1)
    each = (s - l) / (1 / b_small - 1 / b_large) / ((b_large * l - b_small * s) / (b_large - b_small))
    return squared, trace, each.mean().item()

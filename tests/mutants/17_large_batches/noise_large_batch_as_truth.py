"""The large batch is taken for the true gradient.

fails: noise/squared, noise/scale
shows: still contains noise
points: 16
"""
# %% grade_id="noise"
def noise_scale(gradients, rows):
    small, large, b_small, b_large = gradients.flatten(0, 1), gradients.mean(1), rows, rows * gradients.shape[1]
    of_small, of_large = small.square().sum(1).mean().item(), large.square().sum(1).mean().item()
    squared = (b_large * of_large - b_small * of_small) / (b_large - b_small)
    trace = (of_small - of_large) / (1 / b_small - 1 / b_large)
    return of_large, trace, trace / of_large

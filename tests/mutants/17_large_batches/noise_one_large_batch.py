"""The mean over all steps and ranks is taken for the one large batch.

fails: noise/squared, noise/trace, noise/scale
shows: a large batch is the mean over the ranks of one step
points: 15
"""
# %% grade_id="noise"
def noise_scale(gradients, rows):
    small = gradients.flatten(0, 1)
    large_rows = rows * len(small)
    of_small, of_large = small.square().sum(1).mean().item(), small.mean(0).square().sum().item()
    squared = (large_rows * of_large - rows * of_small) / (large_rows - rows)
    trace = (of_small - of_large) / (1 / rows - 1 / large_rows)
    return squared, trace, trace / squared

"""Only rank 0's gradients are taken for the small batches.

fails: noise/squared, noise/trace, noise/scale
shows: Only the gradients of rank 0 are used
points: 15
"""
# %% grade_id="noise"
def noise_scale(gradients, rows):
    large_rows = rows * gradients.shape[1]
    of_small = gradients[:, 0].square().sum(1).mean().item()
    of_large = gradients.mean(1).square().sum(1).mean().item()
    squared = (large_rows * of_large - rows * of_small) / (large_rows - rows)
    trace = (of_small - of_large) / (1 / rows - 1 / large_rows)
    return squared, trace, trace / squared

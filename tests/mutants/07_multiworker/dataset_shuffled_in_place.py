"""The caller's arrays are shuffled.

fails: dataset/once, dataset/batch, dataset/order
shows: make_dataset has changed x or y
points: 13
runs: dataset
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    import numpy as np
    np.random.default_rng(seed + epoch).shuffle(x)
    np.random.default_rng(seed + epoch).shuffle(y)
    k, p = context.input_pipeline_id, context.num_input_pipelines
    return tf.data.Dataset.from_tensor_slices((x[k::p].copy(), y[k::p].copy())).batch(context.get_per_replica_batch_size(global_batch))

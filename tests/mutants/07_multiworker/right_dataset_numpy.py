"""The order is drawn with NumPy.

"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    import numpy as np

    order = np.random.default_rng([seed, epoch]).permutation(len(x))[context.input_pipeline_id::context.num_input_pipelines]
    batch = global_batch // context.num_replicas_in_sync
    return tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(batch)

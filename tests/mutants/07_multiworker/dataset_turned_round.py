"""The stored order, begun at another place.

fails: dataset/order
shows: only begins at a different place
points: 15
runs: dataset
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    import numpy as np
    order = np.roll(np.arange(len(x)), seed + 3 * epoch + 1)
    order = order[context.input_pipeline_id::context.num_input_pipelines]
    return tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(context.get_per_replica_batch_size(global_batch))

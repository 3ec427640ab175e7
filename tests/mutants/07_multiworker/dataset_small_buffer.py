"""The buffer of shuffle holds two samples.

fails: dataset/order
shows: The buffer of `shuffle` must hold all samples
points: 15
runs: dataset
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    d = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(2, seed=seed + epoch)
    return d.shard(context.num_input_pipelines, context.input_pipeline_id).batch(context.get_per_replica_batch_size(global_batch))

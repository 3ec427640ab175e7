"""The share is taken first and then mixed: each worker always has the same samples.

fails: dataset/order
shows: shuffle all samples first, and then take the shard
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.shuffle(len(x), seed=seed + epoch).batch(context.get_per_replica_batch_size(global_batch))

"""Only x is mixed.

fails: dataset/once
shows: Samples and labels do not belong together
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    x, y = (tf.data.Dataset.from_tensor_slices(array) for array in (x, y))
    dataset = tf.data.Dataset.zip((x.shuffle(len(x), seed=seed + epoch), y))
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))

"""The data is sharded by replicas, though a pipeline feeds several.

fails: dataset/once
shows: Shard by num_input_pipelines
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=seed + epoch)
    dataset = dataset.shard(context.num_replicas_in_sync, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))

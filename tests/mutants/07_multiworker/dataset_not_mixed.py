"""Nothing is mixed: the shares change hands from epoch to epoch, in the stored order.

fails: dataset/order
shows: The samples are in their stored order
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    n = context.num_input_pipelines
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shard(n, (context.input_pipeline_id + epoch + seed) % n)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))

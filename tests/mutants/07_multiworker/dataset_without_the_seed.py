"""The order depends on the epoch only: every run has the same, whatever its seed.

fails: dataset/order
shows: A different seed gives the same order
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=epoch)
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))

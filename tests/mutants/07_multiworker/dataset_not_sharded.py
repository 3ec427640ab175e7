"""No share is taken: all workers see all.

fails: dataset/once dataset/order
shows: Every worker has all samples
points: 14
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=seed + epoch)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))

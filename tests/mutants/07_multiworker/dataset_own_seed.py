"""Each worker mixes with a seed of its own, and then takes its share.

fails: dataset/once
shows: All need the same seed for that
shows: samples, with [
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=seed + epoch + 100 * context.input_pipeline_id)
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(global_batch))

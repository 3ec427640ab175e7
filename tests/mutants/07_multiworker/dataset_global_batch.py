"""The global batch on every worker.

fails: dataset/batch
shows: which is the global batch
points: 15
"""
# %% grade_id="dataset"
# %%px --setup
def make_dataset(context, x, y, global_batch, epoch, seed):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=seed + epoch)
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(global_batch)

"""The mean over the own shard, divided by the number of workers; empty shards are seen to.

fails: loss/losses loss/decay
shows: This is the mean of the workers' means
points: 13
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return tf.reduce_sum(example_losses) / tf.cast(tf.maximum(tf.size(example_losses), 1), tf.float64) / 3 + tf.nn.scale_regularization_loss(penalty)

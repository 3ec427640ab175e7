"""The mean over the own shard, divided by the number of workers: right where shards are even, and nan where one is empty.

fails: loss/losses loss/decay
shows: the mean of an empty shard is nan
points: 13
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return tf.reduce_mean(example_losses) / 3 + tf.nn.scale_regularization_loss(penalty)

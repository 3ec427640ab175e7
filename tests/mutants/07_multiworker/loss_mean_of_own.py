"""Each worker takes the mean over its own shard.

fails: loss/losses loss/decay
shows: too large by a factor of about 3
points: 13
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return tf.reduce_mean(example_losses) + tf.nn.scale_regularization_loss(penalty)

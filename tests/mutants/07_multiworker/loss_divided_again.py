"""Divided by the global batch, and by the number of workers too.

fails: loss/losses loss/decay
shows: The losses are too small by a factor of 3
points: 13
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return tf.reduce_sum(example_losses) / global_batch / tf.distribute.get_strategy().num_replicas_in_sync + tf.nn.scale_regularization_loss(penalty)

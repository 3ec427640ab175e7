"""The penalty lacks its half.

fails: loss/decay
shows: The penalty is too large by a factor of 2
points: 15
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.reduce_sum(weight**2) for weight in weights])
    return tf.reduce_sum(example_losses) / global_batch + tf.nn.scale_regularization_loss(penalty)

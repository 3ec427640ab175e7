"""The penalty is divided by the global batch with the losses.

fails: loss/decay
shows: although it belongs to no sample
points: 15
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return (tf.reduce_sum(example_losses) + tf.nn.scale_regularization_loss(penalty)) / global_batch

"""The losses of the samples are returned one by one.

fails: loss/losses loss/decay
shows: Return one number for this worker
points: 13
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return example_losses / global_batch + tf.nn.scale_regularization_loss(penalty)

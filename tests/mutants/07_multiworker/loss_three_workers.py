"""The penalty is divided by three, the number of workers here.

fails: loss/decay
shows: Do not fix this number
points: 15
"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return tf.reduce_sum(example_losses) / global_batch + penalty / 3

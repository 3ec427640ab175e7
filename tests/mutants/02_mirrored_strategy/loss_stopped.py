"""No gradient flows.

fails: replica-loss/gradient
shows: Your gradient is zero
points: 11
runs: replica-loss
"""
# %% grade_id="replica-loss"
def replica_loss(example_losses, global_batch):
    return tf.reduce_sum(tf.stop_gradient(example_losses)) / global_batch

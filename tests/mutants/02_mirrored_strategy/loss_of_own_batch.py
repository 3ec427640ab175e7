"""Loss: the mean over the replica's own examples. n times too large, and nan where a shard is empty.

fails: replica-loss/loss, replica-loss/gradient
shows: Your loss is too large
shows: Your gradient is too large
shows: Divide by the global batch instead of by the replica's own
points: 10
"""
# %% grade_id="replica-loss"
def replica_loss(example_losses, global_batch):
    return tf.reduce_mean(example_losses)

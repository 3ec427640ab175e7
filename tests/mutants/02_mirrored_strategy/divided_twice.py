"""Loss: divided by the global batch and then once more by the number of replicas.

fails: replica-loss/loss, replica-loss/gradient
shows: which is the number of replicas. Since it is already divided
points: 10
"""
# %% grade_id="replica-loss"
def replica_loss(example_losses, global_batch):
    return tf.reduce_sum(example_losses) / global_batch / tf.distribute.get_strategy().num_replicas_in_sync

"""Loss: the replica's own mean, divided by the number of replicas. Right for equal shards only.

fails: replica-loss/loss, replica-loss/gradient
shows: as if it were a mean of the shards' means
points: 10
"""
# %% grade_id="replica-loss"
def replica_loss(example_losses, global_batch):
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return tf.reduce_mean(example_losses) / replicas

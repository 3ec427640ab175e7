"""TensorFlow's own function for the losses, and the penalty divided by hand.

"""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = sum(tf.reduce_sum(weight * weight) for weight in weights) * decay / 2
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync
    return tf.nn.compute_average_loss(example_losses, global_batch_size=global_batch) + penalty / replicas

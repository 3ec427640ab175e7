"""Right: the penalty divided by the number of replicas that the set-up cell's strategy knows."""
# %% grade_id="loss"
# %%px --setup
def part_of_objective(example_losses, weights, decay, global_batch):
    penalty = decay * tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
    return tf.reduce_sum(example_losses) / global_batch + penalty / strategy.num_replicas_in_sync

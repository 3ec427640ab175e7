"""Every n-th example to a device, a step in a tf.function, an epoch that hands out its shards itself and runs eagerly."""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    n = len(devices)

    @tf.function
    def gradient_of_batch():
        parts = []
        for i, device in enumerate(devices):
            with tf.device(device):
                with tf.GradientTape() as tape:
                    copy = tf.identity(weights)
                    tape.watch(copy)
                    total = tf.reduce_sum(example_losses(copy, x[i::n], y[i::n]))
                parts.append(tape.gradient(total, copy))
        return sum(parts[1:], parts[0]) / len(y)

    gradient = gradient_of_batch()
    tf.keras.optimizers.SGD(learning_rate).apply_gradients([(gradient, weights)])
    return gradient

# %% grade_id="replica-loss"
def replica_loss(example_losses, global_batch):
    return tf.math.add_n([tf.reduce_sum(example_losses / tf.cast(global_batch, example_losses.dtype))])

# %% grade_id="epoch"
def train_epoch(strategy, model, optimizer, x, y, global_batch):
    n, losses = strategy.num_replicas_in_sync, []

    def replica_step(x, y, examples):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.reduce_sum(each) / examples
        [gradient] = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients([(gradient, model.trainable_variables[0])])
        return loss

    for begin in range(0, len(x), global_batch):
        xs, ys = x[begin:begin + global_batch], y[begin:begin + global_batch]
        cut = lambda values: strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(np.array_split(values, n)[context.replica_id_in_sync_group]))
        parts = strategy.run(replica_step, args=(cut(xs), cut(ys), float(len(xs))))
        losses.append(float(sum(strategy.experimental_local_results(parts))))
    return losses

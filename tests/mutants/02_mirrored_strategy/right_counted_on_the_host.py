"""Shards of ceil size, weighted means, a size counted on the host and handed in; layers by recursion; fit once for each epoch."""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    share = -(-len(x) // len(devices))
    total = tf.zeros_like(weights)
    for i, device in enumerate(devices):
        own = slice(i * share, (i + 1) * share)
        with tf.device(device), tf.GradientTape() as tape:
            loss = tf.reduce_mean(example_losses(weights, tf.constant(x[own]), tf.constant(y[own])))
            gradient = tape.gradient(loss, weights)
        total += gradient * len(x[own]) / len(x)
    weights.assign(weights - learning_rate * total)
    return total

# %% grade_id="replica-loss"
def replica_loss(example_losses, global_batch):
    return tf.nn.compute_average_loss(example_losses, global_batch_size=global_batch)

# %% grade_id="epoch"
def train_epoch(strategy, model, optimizer, x, y, global_batch):
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")

    def replica_step(x, y, examples):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True)) / examples
        optimizer.minimize(loss, model.trainable_variables, tape)
        return loss

    @tf.function
    def step(x, y, examples):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=(x, y, examples)), axis=None)

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch)
    losses = []
    for i, (xs, ys) in enumerate(strategy.experimental_distribute_dataset(dataset)):
        losses.append(step(xs, ys, tf.constant(min(global_batch, len(x) - i * global_batch), tf.float32)))
    return np.array(losses)

# %% grade_id="split"
def split_gradients(devices, starts, x, layer):
    """Backward by recursion, and a variable that is made first; the tape watches by itself."""
    owner = {i: device for device, own in zip(devices, np.array_split(range(len(starts)), len(devices))) for i in own}
    weights = []
    for i, start in enumerate(starts):
        with tf.device(owner[i]):
            weights.append(tf.Variable(start, dtype=tf.float64))

    def through(i, x):
        if i == len(weights):
            return 2 * x, []
        with tf.device(owner[i]), tf.GradientTape(persistent=True) as tape:
            own = tf.identity(x)
            tape.watch(own)
            y = layer(weights[i], own)
        upstream, later = through(i + 1, y)
        with tf.device(owner[i]):
            own_gradient = tape.gradient(y, weights[i], output_gradients=upstream)
            return tape.gradient(y, own, output_gradients=upstream), [own_gradient, *later]

    return through(0, x)[1]

# %% grade_id="fit"
def fine_tune(strategy, build_model, x, y, per_replica_batch, base_rate, epochs):
    """A dataset that is batched beforehand; fit is called once for each epoch."""
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model = build_model()
        for layer in model.layers[:-1]:
            layer.trainable = False
        model.compile(optimizer=tf.keras.optimizers.SGD(learning_rate=replicas * base_rate),
                      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="right")])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(replicas * per_replica_batch)
    return model, [model.fit(data, verbose=0).history["right"][0] for _ in range(epochs)]

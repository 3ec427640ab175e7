"""Shards of ceil size, weighted means, a size counted on the host and handed in, a plan filled up replica by replica."""
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

# %% grade_id="plan"
def make_plan(examples, per_replica_batch, replicas, base_rate):
    import math

    batch = replicas * per_replica_batch
    last = examples % batch or batch
    shards, left = [], last
    for _ in range(replicas):
        shards.append(min(math.ceil(last / replicas), left))
        left -= shards[-1]
    return {"learning_rate": replicas * base_rate, "last_shards": shards, "steps": math.ceil(examples / batch), "global_batch": batch}

# %% grade_id="scope"
def build_mirrored(strategy, build_model, learning_rate):
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(learning_rate=learning_rate)
        model = build_model()
    return [model, optimizer]

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

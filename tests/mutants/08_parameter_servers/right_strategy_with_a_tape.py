"""A tape computes the gradients, join waits, and each value is fetched by itself."""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=None)
    with strategy.scope():
        w = tf.Variable(tf.constant(start))
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    @tf.function
    def push(x, y):
        with tf.GradientTape() as tape:
            error = tf.linalg.matvec(x, w) - y
            half = tf.reduce_sum(error * error) / 2
        return tape.gradient(half, w)

    for step in steps:
        pushed = [coordinator.schedule(push, args=(tf.constant(x), tf.constant(y))) for x, y in step]
        coordinator.join()
        w.assign(w - rate * sum(one.fetch() for one in pushed))
    return w

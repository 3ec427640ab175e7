"""Right: Keras's optimiser takes the step, and keeps the rate in float32."""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
        optimiser = tf.keras.optimizers.legacy.SGD(rate)
    push = tf.function(lambda x, y: gradient(w, x, y))
    for step in steps:
        coming = [coordinator.schedule(push, args) for args in step]
        optimiser.apply_gradients([(sum(coordinator.fetch(coming)), w)])
    return w

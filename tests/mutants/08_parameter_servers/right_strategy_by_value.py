"""Right: the calls are given the values of the variable, not the variable."""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    one = tf.function(gradient)
    with strategy.scope():
        w = tf.Variable(start, dtype=tf.float64)
    for step in steps:
        now = w.numpy()
        calls = [coordinator.schedule(one, args=(tf.constant(now), tf.constant(x), tf.constant(y))) for x, y in step]
        w.assign(now - rate * sum(coordinator.fetch(call) for call in calls))
    return w

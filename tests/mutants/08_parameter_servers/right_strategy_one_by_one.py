"""Right: all of a step is back before the variable is changed, and then each gradient is taken off by itself."""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    for step in steps:
        calls = [coordinator.schedule(tf.function(gradient), args=(w, x, y)) for x, y in step]
        coordinator.join()
        for call in calls:
            w.assign_sub(rate * call.fetch())
    return w

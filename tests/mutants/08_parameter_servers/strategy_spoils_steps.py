"""The arrays of the steps are scaled in place.

fails: strategy/weights
shows: have been changed in place
points: 19
runs: strategy
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: gradient(w, x, y))
    for step in steps:
        for x, y in step:
            x *= 0.5
            y *= 0.5
        pushed = coordinator.fetch([coordinator.schedule(push, args) for args in step])
        w.assign_sub(4 * rate * tf.add_n(pushed))
    return w

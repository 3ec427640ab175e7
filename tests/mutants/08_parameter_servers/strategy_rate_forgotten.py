"""The sum of the gradients is taken off whole.

fails: strategy/weights
shows: subtracted without the rate
points: 19
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: gradient(w, x, y))
    for step in steps:
        w.assign_sub(tf.add_n(coordinator.fetch([coordinator.schedule(push, args) for args in step])))
    return w

"""The gradients are rounded to float32, and not the rate alone.

fails: strategy/weights
shows: something on the way is rounded to float32
points: 19
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: tf.cast(gradient(w, x, y), tf.float32))
    for step in steps:
        pushed = coordinator.fetch([coordinator.schedule(push, args) for args in step])
        w.assign_sub(rate * tf.cast(tf.add_n(pushed), tf.float64))
    return w

"""What schedule returns is taken for the gradient: it is a RemoteValue.

fails: strategy/places, strategy/weights
shows: train_on_servers raised
points: 18
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: gradient(w, x, y))
    for step in steps:
        w.assign_sub(rate * tf.add_n([coordinator.schedule(push, args) for args in step]))
    return w

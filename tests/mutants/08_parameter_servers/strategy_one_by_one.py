"""The chief changes the variable after each gradient.

fails: strategy/weights
shows: The variable is changed after each gradient
points: 19
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: gradient(w, x, y))
    for args in [args for step in steps for args in step]:
        w.assign_sub(rate * coordinator.fetch(coordinator.schedule(push, args)))
    return w

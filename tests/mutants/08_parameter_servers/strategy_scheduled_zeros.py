"""What is scheduled gives zeros; the gradients are computed on the chief.

fails: strategy/places
shows: were returned by scheduled calls
points: 20
runs: strategy
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: tf.zeros(()))
    for step in steps:
        pushed = coordinator.fetch([coordinator.schedule(push, args) for args in step])
        w.assign_sub(rate * tf.add_n([gradient(w, x, y) for x, y in step]))
    return w

"""The arrays of the steps are centred in place, which changes what is learnt.

fails: strategy/weights
shows: The values are wrong, but they match no mistake
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
            x -= x.mean(0)
            y -= y.mean()
        pushed = coordinator.fetch([coordinator.schedule(push, args) for args in step])
        w.assign_sub(rate * tf.add_n(pushed))
    return w

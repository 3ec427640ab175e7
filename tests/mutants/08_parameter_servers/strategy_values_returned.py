"""The values are returned in place of the variable: a NumPy array, which says that its device is the cpu.

fails: strategy/places
shows: Return the tf.Variable that was trained.
points: 20
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    one = tf.function(gradient)
    with strategy.scope():
        w = tf.Variable(start)
    for step in steps:
        calls = [coordinator.schedule(one, args=(w, x, y)) for x, y in step]
        coordinator.join()
        w.assign_sub(rate * sum(coordinator.fetch(call) for call in calls))
    return w.numpy()

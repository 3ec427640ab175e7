"""The gradients of a step are averaged, not added up; they are computed by the chief, on the server's variable.

fails: strategy/places, strategy/weights
shows: were returned by scheduled calls. Call coordinator.schedule
shows: they must be added up
points: 18
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        w = tf.Variable(start)
    for step in steps:
        w.assign_sub(rate * tf.reduce_mean([gradient(w, x, y) for x, y in step], axis=0))
    return w

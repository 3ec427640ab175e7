"""Nothing is scheduled: the chief computes all gradients, on a variable of its own.

fails: strategy/places
shows: Make it inside strategy.scope()
points: 20
"""
# %% grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    w = tf.Variable(start)
    for step in steps:
        w.assign_sub(rate * tf.add_n([gradient(w, x, y) for x, y in step]))
    return w

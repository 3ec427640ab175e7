"""Split: the layers are cut into blocks, but one call of tape.gradient still makes all of backward.

fails: split/placement
shows: Each layer needs a separate tape
points: 11
runs: split
"""
# %% grade_id="split"
def split_gradients(devices, starts, x, layer):
    owner = [d for d, own in enumerate(np.array_split(np.arange(len(starts)), len(devices))) for _ in own]
    weights, activations = [], [x]
    with tf.GradientTape() as tape:
        for i, start in enumerate(starts):
            with tf.device(devices[owner[i]]):
                weights.append(tf.Variable(start))
                activations.append(layer(weights[i], activations[i]))
        with tf.device(devices[-1]):
            loss = tf.reduce_sum(activations[-1]**2)
    with tf.device(devices[-1]):
        return tape.gradient(loss, weights)

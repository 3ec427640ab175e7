"""Split: one tape for all layers, so that all of backward runs on one device.

fails: split/placement
shows: Each layer needs a separate tape
points: 11
runs: split
"""
# %% grade_id="split"
def split_gradients(devices, starts, x, layer):
    places = [device for device, own in zip(devices, np.array_split(np.arange(len(starts)), len(devices))) for _ in own]
    weights = []
    with tf.GradientTape() as tape:
        for device, start in zip(places, starts):
            with tf.device(device):
                weights.append(tf.Variable(start))
                x = layer(weights[-1], x)
        loss = tf.reduce_sum(x ** 2)
    return tape.gradient(loss, weights)

"""Split: the gradients come in the order of backward.

fails: split/gradients
shows: The first layer's gradient must be the first one
points: 11
runs: split
"""
# %% grade_id="split"
def split_gradients(devices, starts, x, layer):
    places = [device for device, own in zip(devices, np.array_split(np.arange(len(starts)), len(devices))) for _ in own]
    kept = []
    for device, start in zip(places, starts):
        with tf.device(device), tf.GradientTape() as tape:
            w = tf.Variable(start)
            tape.watch(x)
            y = layer(w, x)
        kept.append((device, tape, w, x, y))
        x = y
    upstream, gradients = 2 * x, []
    for device, tape, w, x, y in reversed(kept):
        with tf.device(device):
            gradient, upstream = tape.gradient(y, [w, x], output_gradients=upstream)
        gradients.append(gradient)
    return gradients

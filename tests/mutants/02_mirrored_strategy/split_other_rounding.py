"""Split: the layers are dealt out by another rounding: 6 on 4 devices as 2, 1, 2, 1.

fails: split/placement
shows: as np.array_split divides them
points: 11
runs: split
"""
# %% grade_id="split"
def split_gradients(devices, starts, x, layer):
    places = [devices[i * len(devices) // len(starts)] for i in range(len(starts))]
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
        gradients.insert(0, gradient)
    return gradients

"""Split: a tape for each layer, on its device, but nothing comes back from the layer behind.

fails: split/gradients
shows: What comes back from the layer after it must go in as output_gradients
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
            y = layer(w, x)
        kept.append((device, tape, w, y))
        x = y
    gradients = []
    for device, tape, w, y in reversed(kept):
        with tf.device(device):
            gradients.insert(0, tape.gradient(y, w))
    return gradients

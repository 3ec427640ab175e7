"""By hand: what is left over all goes to the last device.

fails: by-hand/placement
shows: although its share is at most
points: 11
runs: by-hand
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    size, gradient = len(x) // len(devices), 0
    for i, device in enumerate(devices):
        own = slice(i * size, (i + 1) * size if i + 1 < len(devices) else len(x))
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, x[own], y[own])) / len(x)
            gradient += tape.gradient(loss, weights)
    weights.assign_sub(learning_rate * gradient)
    return gradient

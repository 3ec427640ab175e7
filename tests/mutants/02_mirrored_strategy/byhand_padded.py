"""The batch is padded with its first examples until it divides.

fails: by-hand/placement, by-hand/gradient, by-hand/update
shows: No example may be used twice
points: 9
runs: by-hand
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    n = len(devices); size = -(-len(x) // n); order = np.arange(size * n) % len(x)
    gradients = []
    for i, device in enumerate(devices):
        own = order[i * size:(i + 1) * size]
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, x[own], y[own])) / (size * n)
            gradients.append(tape.gradient(loss, weights))
    gradient = tf.add_n(gradients)
    weights.assign_sub(learning_rate * gradient)
    return gradient

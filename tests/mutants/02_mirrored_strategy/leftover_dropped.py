"""By hand: the batch is cut into equal shards, and what is left over is forgotten.

fails: by-hand/placement, by-hand/gradient, by-hand/update
shows: examples were used. Keep the examples that are left over
points: 9
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    gradients, size = [], len(x) // len(devices)
    for i, device in enumerate(devices):
        own = slice(i * size, (i + 1) * size)
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, x[own], y[own])) / (size * len(devices))
            gradients.append(tape.gradient(loss, weights))
    gradient = tf.add_n(gradients)
    weights.assign_sub(learning_rate * gradient)
    return gradient

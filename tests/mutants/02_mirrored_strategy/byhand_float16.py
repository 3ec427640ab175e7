"""Gradients are rounded to float16 before they are added.

fails: by-hand/gradient, by-hand/update
shows: right only to a few digits
points: 10
runs: by-hand
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    gradients = []
    for device, xs, ys in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, xs, ys)) / len(x)
            gradients.append(tf.cast(tape.gradient(loss, weights), tf.float16))
    gradient = tf.cast(tf.add_n(gradients), tf.float32)
    weights.assign_sub(learning_rate * gradient)
    return gradient

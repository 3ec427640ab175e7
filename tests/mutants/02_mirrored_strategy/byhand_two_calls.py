"""Each shard is cut in two halves, with a call for each.

fails: by-hand/placement
shows: example_losses was called 6 times. Call it once for each of 3 devices
points: 11
runs: by-hand
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    gradients = []
    for device, xs, ys in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
        for xh, yh in zip(np.array_split(xs, 2), np.array_split(ys, 2)):
            with tf.device(device):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(example_losses(weights, xh, yh)) / len(x)
                gradients.append(tape.gradient(loss, weights))
    gradient = tf.add_n(gradients)
    weights.assign_sub(learning_rate * gradient)
    return gradient

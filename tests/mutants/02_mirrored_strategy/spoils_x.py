"""By hand: the caller's examples are moved to have no mean.

fails: by-hand/gradient, by-hand/update
shows: hand_made_step has changed `x`
points: 10
runs: by-hand
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    x -= x.mean(0)
    gradients = []
    for device, own_x, own_y in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, own_x, own_y)) / len(x)
            gradients.append(tape.gradient(loss, weights))
    gradient = tf.add_n(gradients)
    weights.assign_sub(learning_rate * gradient)
    return gradient

"""By hand: what is returned is the step, and not the gradient.

fails: by-hand/gradient
shows: the rate belongs in the update
points: 11
runs: by-hand
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    gradients = []
    for device, own_x, own_y in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, own_x, own_y)) / len(x)
            gradients.append(tape.gradient(loss, weights))
    step = learning_rate * tf.add_n(gradients)
    weights.assign_sub(step)
    return step

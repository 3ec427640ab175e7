"""By hand: every device divides by its own shard, and the sum over the devices is n times too large.

fails: by-hand/gradient, by-hand/update
shows: the number of replicas. Divide by the global batch
shows: The update is right for the gradient that you return
points: 10
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    gradients = []
    for device, own_x, own_y in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(example_losses(weights, own_x, own_y))
            gradients.append(tape.gradient(loss, weights))
    gradient = tf.add_n(gradients)
    weights.assign_sub(learning_rate * gradient)
    return gradient

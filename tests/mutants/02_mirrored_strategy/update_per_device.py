"""By hand: the weights are updated after each shard, so that the next shard's gradient is taken elsewhere.

fails: by-hand/gradient, by-hand/update
shows: The weights are not start - learning_rate * gradient
points: 10
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    gradients = []
    for device, own_x, own_y in zip(devices, np.array_split(x, len(devices)), np.array_split(y, len(devices))):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(example_losses(weights, own_x, own_y)) / len(x)
            gradients.append(tape.gradient(loss, weights))
        weights.assign_sub(learning_rate * gradients[-1])
    return tf.add_n(gradients)

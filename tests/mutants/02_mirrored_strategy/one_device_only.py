"""By hand: the right gradient, computed on one device.

fails: by-hand/placement
shows: Call example_losses inside `with tf.device(device)`
points: 11
"""
# %% grade_id="by-hand"
def hand_made_step(devices, weights, x, y, example_losses, learning_rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(example_losses(weights, x, y))
    gradient = tape.gradient(loss, weights)
    weights.assign_sub(learning_rate * gradient)
    return gradient

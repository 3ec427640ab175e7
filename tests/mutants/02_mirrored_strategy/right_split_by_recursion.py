"""The cut model as a recursion: each layer calls the next one, and gets back what its output's gradient is."""
# %% grade_id="split"
def split_gradients(devices, starts, x, layer):
    blocks = np.array_split(np.arange(len(starts)), len(devices))

    def onwards(i, x):
        """The gradients of layers i and above, and the gradient of their input."""
        if i == len(starts):
            return [], 2 * x
        device = next(d for d, block in zip(devices, blocks) if i in block)
        with tf.device(device), tf.GradientTape(watch_accessed_variables=False) as tape:
            w = tf.Variable(starts[i])
            tape.watch([x, w])
            y = layer(w, x)
        later, upstream = onwards(i + 1, y)
        with tf.device(device):
            own, below = tape.gradient(y, [w, x], output_gradients=upstream)
        return [own, *later], below

    return onwards(0, tf.convert_to_tensor(x))[0]

"""fit gets the arrays and the global batch, and is told not to mix; the optimizer is made outside the scope."""
# %% grade_id="fit"
# %%px --setup
def train_with_fit(make_model, x, y, global_batch, epochs, rate):
    optimizer = tf.keras.optimizers.SGD(learning_rate=rate)
    with strategy.scope():
        model = make_model()
        model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=global_batch, epochs=epochs, shuffle=False, verbose=0)
    return model

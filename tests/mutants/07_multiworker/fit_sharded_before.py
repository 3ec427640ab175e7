"""Each worker takes its share of the data before it gives it to fit, which shares it out once more.

fails: fit/steps, fit/weights
shows: The data was split twice
points: 14
"""
# %% grade_id="fit"
# %%px --setup
def train_with_fit(make_model, x, y, global_batch, epochs, rate):
    with strategy.scope():
        model = make_model()
        model.compile(tf.keras.optimizers.SGD(rate), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = x[rank::3], y[rank::3]
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), epochs=epochs, verbose=0)
    return model

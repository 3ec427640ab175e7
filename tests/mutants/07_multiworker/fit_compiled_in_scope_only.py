"""The model is made outside the scope.

fails: fit/steps, fit/weights
shows: made outside strategy.scope()
points: 14
"""
# %% grade_id="fit"
# %%px --setup
def train_with_fit(make_model, x, y, global_batch, epochs, rate):
    model = make_model()
    with strategy.scope():
        model.compile(tf.keras.optimizers.SGD(rate), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), epochs=epochs, verbose=0)
    return model

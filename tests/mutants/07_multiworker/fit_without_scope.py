"""No scope: each worker trains a model of its own.

fails: fit/weights
shows: has trained alone, from its own start
points: 15
"""
# %% grade_id="fit"
# %%px --setup
def train_with_fit(make_model, x, y, global_batch, epochs, rate):
    model = make_model()
    model.compile(tf.keras.optimizers.SGD(rate), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch), epochs=epochs, verbose=0)
    return model

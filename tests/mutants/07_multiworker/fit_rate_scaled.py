"""The rate is multiplied by the number of workers, though the global batch is given.

fails: fit/weights
shows: The learning rate was multiplied by the number of workers
points: 15
"""
# %% grade_id="fit"
# %%px
def train_with_fit(make_model, x, y, global_batch, epochs, rate):
    with strategy.scope():
        model = make_model()
        model.compile(tf.keras.optimizers.SGD(rate * strategy.num_replicas_in_sync), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, batch_size=global_batch, epochs=epochs, shuffle=False, verbose=0)
    return model

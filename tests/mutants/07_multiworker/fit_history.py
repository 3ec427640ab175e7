"""The history that fit returns is handed back, in place of the model.

fails: fit/steps, fit/weights
shows: Return the model that Model.fit has trained.
points: 14
"""
# %% grade_id="fit"
# %%px
def train_with_fit(make_model, x, y, global_batch, epochs, rate):
    with strategy.scope():
        model = make_model()
        model.compile(tf.keras.optimizers.SGD(rate), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model.fit(x, y, batch_size=global_batch, epochs=epochs, shuffle=False, verbose=0)

"""Scope: the model is made outside, only the optimizer inside.

fails: scope/mirrored
shows: of the model lives on 1 of
points: 9
"""
# %% grade_id="scope"
def build_mirrored(strategy, build_model, learning_rate):
    model = build_model()
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(learning_rate)
    return model, optimizer

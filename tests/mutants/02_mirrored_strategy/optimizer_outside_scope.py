"""Scope: the optimizer is made outside.

fails: scope/mirrored
shows: of the optimizer lives on 1 of
points: 9
"""
# %% grade_id="scope"
def build_mirrored(strategy, build_model, learning_rate):
    with strategy.scope():
        model = build_model()
    return model, tf.keras.optimizers.SGD(learning_rate)

"""Fit: the layers are frozen after compile.

fails: fit/fit
shows: before compile, because Keras looks at it then
points: 10
runs: fit
"""
# %% grade_id="fit"
def fine_tune(strategy, build_model, x, y, per_replica_batch, base_rate, epochs):
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model = build_model()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(base_rate * replicas), loss, metrics=["accuracy"])
    for layer in model.layers[:-1]:
        layer.trainable = False
    history = model.fit(x, y, batch_size=per_replica_batch * replicas, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["accuracy"]

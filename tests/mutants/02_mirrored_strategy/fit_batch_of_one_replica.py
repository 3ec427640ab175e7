"""Fit: the batch that is known to work on one device is taken for the global one.

fails: fit/fit
shows: `batch_size` in fit is the global batch
points: 10
runs: fit
"""
# %% grade_id="fit"
def fine_tune(strategy, build_model, x, y, per_replica_batch, base_rate, epochs):
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model = build_model()
        for layer in model.layers[:-1]:
            layer.trainable = False
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(base_rate * replicas), loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=per_replica_batch, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["accuracy"]

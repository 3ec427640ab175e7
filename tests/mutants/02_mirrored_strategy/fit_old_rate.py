"""Fit: the learning rate does not grow with the global batch.

fails: fit/fit
shows: is still the one for a single replica
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
        model.compile(tf.keras.optimizers.SGD(base_rate), loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=per_replica_batch * replicas, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["accuracy"]

"""Fit: only the first layer is frozen.

fails: fit/fit
shows: A layer before the last one has moved
points: 10
runs: fit
"""
# %% grade_id="fit"
def fine_tune(strategy, build_model, x, y, per_replica_batch, base_rate, epochs):
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model = build_model()
        model.layers[0].trainable = False
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(base_rate * replicas), loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=per_replica_batch * replicas, epochs=epochs, shuffle=False, verbose=0)
    return model, history.history["accuracy"]

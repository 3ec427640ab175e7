"""Two epochs, whatever is asked.

fails: fit/fit
shows: The weights of the last layer differ
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
        model.compile(tf.keras.optimizers.SGD(base_rate * replicas), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(x, y, batch_size=per_replica_batch * replicas, epochs=2, shuffle=False, verbose=0)
    return model, history.history["accuracy"]

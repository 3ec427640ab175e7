"""Fit: one device trains with the whole batch, and the weights are copied into a model in the scope.

fails: fit/fit
shows: this model's optimizer has taken no step
points: 10
runs: fit
"""
# %% grade_id="fit"
def fine_tune(strategy, build_model, x, y, per_replica_batch, base_rate, epochs):
    replicas = strategy.num_replicas_in_sync

    def compiled():
        model = build_model()
        for layer in model.layers[:-1]:
            layer.trainable = False
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(base_rate * replicas), loss, metrics=["accuracy"])
        return model

    alone = compiled()
    history = alone.fit(x, y, batch_size=per_replica_batch * replicas, epochs=epochs, shuffle=False, verbose=0)
    with strategy.scope():
        model = compiled()
    model.set_weights(alone.get_weights())
    return model, history.history["accuracy"]

"""Epoch: the training is right, but the reported losses are averaged over the replicas.

fails: epoch/losses
shows: which is the number of replicas. Since it is already divided
points: 11
"""
# %% grade_id="epoch"
def train_epoch(strategy, model, optimizer, x, y, global_batch):
    def replica_step(x, y):
        examples = tf.distribute.get_replica_context().all_reduce("SUM", tf.shape(x)[0])
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.reduce_sum(each) / tf.cast(examples, each.dtype)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    step = tf.function(lambda batch: strategy.reduce("MEAN", strategy.run(replica_step, batch), axis=None))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch)
    return [float(step(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]

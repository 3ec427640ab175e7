"""Epoch: the last, smaller batch is divided by the full global batch.

fails: epoch/losses, epoch/weights
shows: Only the last loss is wrong, because it is divided by the full global batch
points: 10
"""
# %% grade_id="epoch"
def train_epoch(strategy, model, optimizer, x, y, global_batch):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.nn.compute_average_loss(each, global_batch_size=global_batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    step = tf.function(lambda batch: strategy.reduce("SUM", strategy.run(replica_step, batch), axis=None))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch)
    return [float(step(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]

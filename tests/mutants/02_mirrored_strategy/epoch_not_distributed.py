"""Epoch: the dataset is not distributed, so that every replica takes the whole batch.

fails: epoch/shards, epoch/losses, epoch/weights
shows: Call the model once for each shard and step
points: 9
"""
# %% grade_id="epoch"
def train_epoch(strategy, model, optimizer, x, y, global_batch):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))
            loss = tf.reduce_mean(each)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    step = tf.function(lambda batch: strategy.reduce("SUM", strategy.run(replica_step, batch), axis=None))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(global_batch)
    return [float(step(batch)) for batch in dataset]

"""Epoch: the examples are shuffled.

fails: epoch/losses, epoch/weights
shows: Take the examples in their order
shows: so do the losses before the last step
points: 10
runs: epoch
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

    step = tf.function(lambda batch: strategy.reduce("SUM", strategy.run(replica_step, batch), axis=None))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=1).batch(global_batch)
    return [float(step(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]

"""Train EfficientNet-B2 on Stanford Dogs, 260 x 260 pixels, with MirroredStrategy and Model.fit: one process, a replica on each GPU (or one on the CPU).

    python 02_dogs.py DOGS RUN --epochs 30

DOGS holds Images/<breed>/*.jpg and, if you have them, train_list.mat and test_list.mat. RUN gets the checkpoint: type the same line again, and the training
goes on at the step where the checkpoint was written, with its weights, its optimiser and the images that come next. Dropout draws its masks anew.
"""

import argparse
import os
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 2, as in the notebook
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from manyhands.data import dog_photos  # noqa: E402

SIZE = 260


def read(path, label):
    """The middle square, SIZE pixels wide; 0 to 255, the network itself scales them."""
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    height, width = tf.shape(image)[0], tf.shape(image)[1]
    edge = tf.minimum(height, width)
    square = tf.image.crop_to_bounding_box(image, (height - edge) // 2, (width - edge) // 2, edge, edge)
    return tf.image.resize(square, (SIZE, SIZE), "bicubic", antialias=True), label


def batches(paths, labels, batch, epoch=None, done=0):
    """All images but the first `done` batches: for an epoch of training in its own order and perhaps mirrored, the same whenever it is asked for."""
    order = np.arange(len(paths)) if epoch is None else np.random.default_rng(epoch).permutation(len(paths))
    order = order[done * batch:]
    data = tf.data.Dataset.from_tensor_slices(([str(paths[i]) for i in order], [labels[i] for i in order]))
    data = data.map(read, tf.data.AUTOTUNE)
    if epoch is not None:
        seeds = tf.data.Dataset.from_tensor_slices(order)
        data = tf.data.Dataset.zip((data, seeds)).map(lambda pair, i: (tf.image.stateless_random_flip_left_right(pair[0], (epoch, i)), pair[1]))
    return data.batch(batch).prefetch(tf.data.AUTOTUNE)


def network(breeds, weights):
    base = tf.keras.applications.EfficientNetB2(weights=weights, include_top=False, pooling="avg", input_shape=(SIZE, SIZE, 3))
    return tf.keras.Sequential([base, tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(breeds, dtype="float32")])


class Keep(tf.keras.callbacks.Callback):
    """Writes the checkpoint after every `every` steps and at the end of an epoch, and stops when `budget` steps have been made."""

    def __init__(self, manager, every, budget):
        super().__init__()
        self.manager, self.every, self.budget = manager, every, budget

    def on_train_batch_end(self, batch, logs=None):
        self.budget -= 1
        self.model.stop_training = not self.budget
        if (batch + 1) % self.every == 0 or not self.budget:
            self.manager.save()

    def on_epoch_end(self, epoch, logs=None):
        self.manager.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dogs")
    parser.add_argument("run")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64, help="images a step, all replicas together")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--weights", help="a file with weights of Keras's EfficientNetB2 without its top; else they are drawn")
    parser.add_argument("--save-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--steps", type=int, default=-1, help="stop after so many steps, as a job does whose time is up")
    options = parser.parse_args()
    strategy = tf.distribute.MirroredStrategy(tf.config.list_logical_devices("GPU") or ["CPU:0"])
    if tf.config.list_logical_devices("GPU"):
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    (paths, labels, breeds), (*test, _) = dog_photos(options.dogs), dog_photos(options.dogs, "test")
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = network(breeds, options.weights)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.Adam(options.rate), loss, metrics=["accuracy"])
        model.optimizer.build(model.trainable_variables)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, optimizer=model.optimizer), Path(options.run), max_to_keep=1)
    manager.restore_or_initialize()
    keep, each = Keep(manager, options.save_every, options.steps), -(-len(paths) // options.batch)
    while (made := int(model.optimizer.iterations.numpy())) < options.epochs * each and keep.budget:
        epoch, done = divmod(made, each)
        print(f"epoch {epoch + 1}, {done} of {each} steps made", flush=True)
        model.fit(batches(paths, labels, options.batch, epoch, done), initial_epoch=epoch, epochs=epoch + 1, callbacks=[keep])
        if keep.budget:
            model.evaluate(batches(*test, options.batch))
    total = sum(np.abs(weight, dtype=np.float64).sum() for weight in model.get_weights())
    print(f"{made} of {options.epochs * each} steps made; sum of |weights| {total:.6f}")


if __name__ == "__main__":
    main()

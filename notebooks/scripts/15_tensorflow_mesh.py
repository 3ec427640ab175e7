"""The program of tutorial 15 in TensorFlow: one process, four logical devices on a mesh of 2 x 2, five layouts.

    python scripts/15_tensorflow_mesh.py
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", ""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

DIMS = {"x": ("batch", "in"), "up": ("in", "hidden"), "down": ("hidden", "out")}
SIZES = {"batch": 8, "in": 8, "hidden": 16, "out": 4}
LAYOUTS = [{}, {"batch": "dp"}, {"hidden": "tp"},
           {"batch": "dp", "hidden": "tp"}, {"in": "tp"}]


@tf.function
def step(x, up, down):
    with tf.GradientTape() as tape:
        tape.watch([up, down])
        h = tf.tanh(x @ up)
        y = h @ down
        loss = tf.reduce_sum(y ** 2)
    return h, y, *tape.gradient(loss, [up, down])


def main():
    # before anything is computed in this process
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4)
    devices = [f"CPU:{i}" for i in range(4)]
    mesh = dtensor.create_mesh([("dp", 2), ("tp", 2)], devices=devices)
    random = np.random.default_rng(0)
    whole = {name: random.normal(size=[SIZES[d] for d in dims]) for name, dims in DIMS.items()}
    one_process = step(*map(tf.constant, whole.values()))
    everywhere = dtensor.Layout([dtensor.UNSHARDED] * 2, mesh)

    def laid_out(name, layout):
        axes = [layout.get(dimension, dtensor.UNSHARDED) for dimension in DIMS[name]]
        copies = dtensor.copy_to_mesh(tf.constant(whole[name]), everywhere)
        return dtensor.relayout(copies, dtensor.Layout(axes, mesh))

    for layout in LAYOUTS:
        found = step(*[laid_out(name, layout) for name in DIMS])
        apart = max(np.abs(dtensor.relayout(a, everywhere).numpy() - b.numpy()).max()
                    for a, b in zip(found, one_process))
        shapes = [tuple(dtensor.unpack(tensor)[0].shape) for tensor in found[:2]]
        print(f"{layout}: a device holds h {shapes[0]}, y {shapes[1]}; "
              f"as one process: {apart < 1e-12}")


if __name__ == "__main__":
    main()

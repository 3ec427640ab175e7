"""Tensor parallelism on a mesh of ranks.

Here are the two functions of a layer that is cut, and tensors with named dimensions.

`copy_to` and `reduce_from` are f and g of Megatron-LM; `Mesh` and `einsum` are a small Mesh
TensorFlow: one program, and a layout that says which dimension is cut along which axis of the mesh.

    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("x", "y"))
    mesh = Mesh(grid, {"batch": "x", "hidden": "y"})
    x, w = mesh.cut(data, ("batch", "in")), mesh.cut(weight, ("in", "hidden"))
    h = einsum(x, w, ("batch", "hidden")).map(torch.tanh)

Here a tensor of which every rank of a group has a copy is one tensor, and its gradient is whole on
each of them: a loss that N ranks compute alike counts once, and each of them calls `backward()`.
(In `manyhands.functions` it counts N times.)
"""

from manyhands.mesh.f_and_g import copy_to, reduce_from
from manyhands.mesh.named import Mesh, Named, einsum

__all__ = ["Mesh", "Named", "copy_to", "einsum", "reduce_from"]

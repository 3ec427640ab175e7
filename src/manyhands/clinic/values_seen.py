"""What is kept of the values that a model is called with, and facts on modules and generators."""

from manyhands.clinic.loaders import digest

WRAPPERS = ("DistributedDataParallel", "DataParallel")


def is_wrapper(module):
    """Whether this module only hands on what it gets: to one inner model, or, Lightning's, to the script's method."""
    return type(module).__name__ in WRAPPERS or any(cls.__name__ == "LightningModule" for cls in type(module).__mro__)


def numbers_of(tensor, stride):
    """A copy of every `stride`-th number of a tensor, in one row. The gradient of an Embedding may be sparse."""
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    return dense.reshape(-1)[::stride].cpu().clone()


def noise_state():
    """The states of the generators that dropout and other noise are drawn from."""
    import torch

    on_gpu = [torch.cuda.get_rng_state()] if torch.cuda.default_generators else []  # a stand-in has them, too
    return [torch.get_rng_state(), *on_gpu]


def trains(module):
    return any(parameter.requires_grad for parameter in module.parameters())


def is_plain(value):
    return isinstance(value, (int, float, bool, str, type(None))) or (
        isinstance(value, tuple) and all(isinstance(one, (int, float)) for one in value))


def kept(tree):
    """The tree with copies of its tensors, on the CPU."""
    import torch
    from torch.utils._pytree import tree_map

    def copy_of(x):
        if not isinstance(x, torch.Tensor):
            return x if is_plain(x) else None
        return (x.to_local() if hasattr(x, "to_local") else x).detach().cpu().clone()

    return tree_map(copy_of, tree)


def rows_of(values):
    """The digest of each row: of what goes into the model, in all tensors that have as many rows as the first."""
    import torch

    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.dim()]
    tensors = [tensor for tensor in tensors if len(tensor) == len(tensors[0])]
    return [digest([tensor[i] for tensor in tensors]) for i in range(len(tensors[0]))] if tensors else []

"""The bias of the in split is added by one operator more; the ReLU of the pair is a clamp, and the pair stands on its own."""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    y = sum_of_parts(conv2d(x, weight, stride=stride, padding=padding), c)
    if bias is not None:
        y = torch.add(y, bias.view(1, -1, 1, 1))
    return y
# %% grade_id="pair"
# %%px --setup
def pair(x, first, second, c, padding=1):
    parts = conv2d(copy_to_parts(x, c), *first, padding=padding).clamp(min=0)
    y = sum_of_parts(conv2d(parts, second[0], padding=padding), c)
    return y if second[1] is None else y + second[1].view(1, -1, 1, 1)

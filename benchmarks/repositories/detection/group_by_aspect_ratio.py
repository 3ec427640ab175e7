"""Batches of images that are all wide or all tall, from any sampler."""

import bisect
import copy
import math
from collections import defaultdict
from itertools import chain, repeat

from torch.utils.data.sampler import BatchSampler, Sampler


def _repeat_to_at_least(iterable, n):
    repeat_times = math.ceil(n / len(iterable))
    return list(chain.from_iterable(repeat(iterable, repeat_times)))


class GroupedBatchSampler(BatchSampler):
    def __init__(self, sampler, group_ids, batch_size):
        if not isinstance(sampler, Sampler):
            raise ValueError(f"sampler should be an instance of torch.utils.data.Sampler, but got sampler={sampler}")
        self.sampler, self.group_ids, self.batch_size = sampler, group_ids, batch_size

    def __iter__(self):
        buffer_per_group, samples_per_group, num_batches = defaultdict(list), defaultdict(list), 0
        for idx in self.sampler:
            group_id = self.group_ids[idx]
            buffer_per_group[group_id].append(idx)
            samples_per_group[group_id].append(idx)
            if len(buffer_per_group[group_id]) == self.batch_size:
                yield buffer_per_group[group_id]
                num_batches += 1
                del buffer_per_group[group_id]
        # each rank has batches that are not full: as many are filled as the length promises
        num_remaining = len(self) - num_batches
        if num_remaining > 0:
            for group_id, _ in sorted(buffer_per_group.items(), key=lambda x: len(x[1]), reverse=True):
                remaining = self.batch_size - len(buffer_per_group[group_id])
                samples_from_group_id = _repeat_to_at_least(samples_per_group[group_id], remaining)
                buffer_per_group[group_id].extend(samples_from_group_id[:remaining])
                yield buffer_per_group[group_id]
                num_remaining -= 1
                if num_remaining == 0:
                    break

    def __len__(self):
        return len(self.sampler) // self.batch_size


def create_aspect_ratio_groups(dataset, k=0):
    aspect_ratios = [dataset.get_height_and_width(i) for i in range(len(dataset))]
    aspect_ratios = [width / height for height, width in aspect_ratios]
    bins = (2 ** (i / k) for i in range(-k, k + 1)) if k > 0 else [1.0]
    bins = sorted(copy.deepcopy(list(bins)))
    return [bisect.bisect_right(bins, y) for y in aspect_ratios]

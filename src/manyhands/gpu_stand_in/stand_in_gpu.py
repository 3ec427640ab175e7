"""The GPU that the stand-in says it is: its name, its capability and its memory."""

from types import SimpleNamespace

NAME = "NVIDIA A100-SXM4-80GB (a stand-in of manyhands: the CPU)"
CAPABILITY, MEMORY_BYTES = (8, 0), 80 * 2**30


def properties(device: object = None) -> SimpleNamespace:
    """Answer `torch.cuda.get_device_properties`."""
    return SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=MEMORY_BYTES,
        multi_processor_count=108,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_multiprocessor=167936,
        L2_cache_size=40 * 2**20,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
        uuid="stand-in",
    )

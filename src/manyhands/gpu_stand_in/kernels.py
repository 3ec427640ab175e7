"""What no stand-in can replace: kernels that exist for GPUs only.

They are named by a script's error.
"""

import re

PACKAGES = {
    "triton",
    "flash_attn",
    "flash_attn_2_cuda",
    "flash_attn_interface",
    "flashinfer",
    "xformers",
    "apex",
    "amp_C",
    "apex_C",
    "transformer_engine",
    "bitsandbytes",
    "cupy",
    "pycuda",
    "mamba_ssm",
    "causal_conv1d",
    "liger_kernel",
    "deep_gemm",
    "deep_ep",
    "tilelang",
    "cutlass",
    "megablocks",
    "grouped_gemm",
    "sageattention",
    "fused_layer_norm_cuda",
    "dropout_layer_norm",
    "xentropy_cuda_lib",
    "rotary_emb",
    "fused_dense_lib",
    "vllm",
    "fbgemm_gpu",
    "unsloth",
}
MISSING = re.compile(r"No module named '([\w.]+)'|cannot import name '\w+' from '([\w.]+)'")
COMPILES = re.compile(
    r"CUDA_HOME environment variable|nvcc(?:' |: )(?:not found|No such)|No CUDA runtime is found"
)
NO_DRIVER = re.compile(
    r"\d active drivers|No supported gpu backend found|triton\S* is not (?:installed|available)|"
    r"Cannot find a working triton|"
    r"libcuda\S*\.so|libcublas\S*\.so|libnv\w+\.so|(?:Found no|no) NVIDIA driver",
    re.IGNORECASE,
)
NO_CPU = re.compile(
    r"Could not run '[\w:.]+' with arguments from the 'CPU' backend|not implemented for 'CPU'|"
    r"only supports? (?:CUDA|GPU)|(?:must be|expected) (?:on|to be on|a) (?:CUDA|GPU)|"
    r"FlashAttention only|CUDA graphs record",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"Torch not compiled with CUDA enabled|has no attribute '_cuda_\w+'|Cannot access accelerator"
    r" device|"
    r"No CUDA GPUs are available|ProcessGroupNCCL is only supported with GPUs|"
    r"Distributed package doesn't have NCCL|"
    r"No backend type associated with device type cuda"
)
REMEDY = (
    "Choose the script's alternative to it (for attention, PyTorch's scaled_dot_product_attention; "
    "otherwise the function without the kernel), or start this command on a machine with GPUs."
)


def explain_gpu_error(error: str, stand_in: bool = True) -> str | None:
    """Explain why a script failed that has asked for what only a GPU has, and what to do.

    `error` is its text; None for any other error.
    """
    last = error.rstrip().rpartition("\n")[2]
    if missing := MISSING.search(last):
        package = (missing[1] or missing[2]).partition(".")[0]
        if package in PACKAGES:
            return (
                f"{package} is a package of kernels for GPUs, which have no CPU implementation. "
                f"{REMEDY}"
            )
    if COMPILES.search(error):
        return f"The script compiles a CUDA extension, which has no CPU implementation. {REMEDY}"
    if NO_DRIVER.search(last):
        of_triton = "triton" in error.lower() or "active drivers" in last
        what = "a Triton kernel" if of_triton else "a library that needs a GPU's driver"
        return f"The script calls {what}, which has no CPU implementation. {REMEDY}"
    if NO_CPU.search(last):
        return f"The script calls a kernel for GPUs that has no CPU implementation. {REMEDY}"
    if ASKS.search(last):
        if not stand_in:
            return (
                "The script needs a GPU, but there is none here. Without --as-it-is, a stand-in "
                "replaces it, and device cuda is the CPU."
            )
        return (
            "The script uses a feature of GPUs that the stand-in on this CPU does not have. "
            f"{REMEDY}"
        )
    return None

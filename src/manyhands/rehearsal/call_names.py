"""The names of torch.distributed's calls: what is special about which of them."""

BATCH = "batch_isend_irecv"
MESSAGES = ("send", "recv", "isend", "irecv")
# two messages each: the sizes, then the bytes
MESSAGES_OF_OBJECTS = ("send_object_list", "recv_object_list")
# of objects, and barriers: Python waits in them until the GPU is done
CPU_WAITS = {
    "barrier",
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
}
OBJECTS = CPU_WAITS - {"barrier"}
ROOTED = {"broadcast", "reduce", "gather", "scatter"}
# ProcessGroup's method -> the function of torch.distributed
FUNCTION_OF_METHOD = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce_coalesced",
    "allgather": "all_gather",
    "_allgather_base": "all_gather_single",
    "allgather_coalesced": "all_gather_coalesced",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
}
# ProcessGroup's methods that fill a list of tensors
FILLS_A_LIST = {"allgather", "allgather_coalesced", "gather", "alltoall"}

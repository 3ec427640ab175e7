"""What the stages of a pipeline send each other."""

import torch
import torch.distributed as dist

from . import process_group_manager as pgm


def pipeline_communicate(operation, device, dtype, tensor=None, shapes=None):
    manager = pgm.process_group_manager
    if operation == "recv_forward":
        if manager.pp_is_first_stage:
            return None
        tensor, peer_rank = torch.empty(shapes, requires_grad=True, device=device, dtype=dtype), manager.pp_prev_rank
    elif operation == "send_forward":
        if manager.pp_is_last_stage:
            return None
        peer_rank = manager.pp_next_rank
    elif operation == "recv_backward":
        if manager.pp_is_last_stage:
            return None
        tensor, peer_rank = torch.empty(shapes, device=device, dtype=dtype), manager.pp_next_rank
    elif operation == "send_backward":
        if manager.pp_is_first_stage:
            return None
        peer_rank = manager.pp_prev_rank
    is_send = operation.startswith("send")
    op = dist.P2POp(dist.isend if is_send else dist.irecv, tensor, peer_rank)
    [req.wait() for req in dist.batch_isend_irecv([op])]
    torch.cuda.synchronize()
    return tensor if not is_send else None


def bidirectional_pipeline_communicate(operation, send_tensor, recv_shapes, device, dtype):
    manager = pgm.process_group_manager
    is_fwd = operation == "send_fwd_recv_bwd"
    if (is_fwd and manager.pp_is_last_stage) or (not is_fwd and manager.pp_is_first_stage):
        return None
    peer_rank = manager.pp_next_rank if is_fwd else manager.pp_prev_rank
    recv_tensor = torch.empty(recv_shapes, requires_grad=True, device=device, dtype=dtype)
    reqs = dist.batch_isend_irecv([dist.P2POp(dist.isend, send_tensor, peer_rank),
                                   dist.P2POp(dist.irecv, recv_tensor, peer_rank)])
    [req.wait() for req in reqs]
    torch.cuda.synchronize()
    return recv_tensor

"""`--checkpoint=digits.pt` in one word, and the number of the task, which is that of the node."""
# %% grade_id="job"
JOB = r"""#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1

export MASTER_ADDR=$(scontrol -o show node "$SLURM_JOB_NODELIST" | head -1 |
                     sed 's/.*NodeAddr=\([^ ]*\).*/\1/')
export MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
srun --ntasks-per-node=1 bash -c "torchrun --nnodes $SLURM_NNODES --node_rank \$SLURM_PROCID --nproc_per_node 2 --master_addr $MASTER_ADDR --master_port $MASTER_PORT 06_train.py --checkpoint=digits.pt"
"""

"""srun runs in the background, and the file ends.

fails: job/nodes
shows: Slurm ends the job with its file
points: 18
"""
# %% grade_id="job"
JOB = r"""#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1

export MASTER_ADDR=$(scontrol -o show node "$SLURM_JOB_NODELIST" | head -1 |
                     sed 's/.*NodeAddr=\([^ ]*\).*/\1/')
export MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
srun bash -c 'exec torchrun --nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" \
    --nproc-per-node 2 --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
    06_train.py --checkpoint digits.pt' &
"""

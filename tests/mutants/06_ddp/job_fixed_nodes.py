"""The number of nodes is written down a second time, where sbatch cannot change it.

fails: job/nodes
shows: changes the number, use SLURM_NNODES
points: 18
"""
# %% grade_id="job"
JOB = r"""#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --time=00:10:00
#SBATCH --output=digits-%j.txt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
export MASTER_ADDR=$(scontrol -o show node "$SLURM_JOB_NODELIST" | head -1 | sed 's/.*NodeAddr=\([^ ]*\).*/\1/')
export MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
srun bash -c 'torchrun --nnodes 2 --node-rank "$SLURM_NODEID" --nproc-per-node 2 --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" 06_train.py --checkpoint digits.pt'
"""

"""c10d deals out the places, so all nodes run one command; short options."""
# %% grade_id="job"
JOB = r"""#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --time=00:10:00
#SBATCH --output=digits-%j.txt
#SBATCH -N 2
#SBATCH --ntasks-per-node=1
export MASTER_ADDR=$(scontrol -o show node "$SLURM_JOB_NODELIST" | head -1 | sed 's/.*NodeAddr=\([^ ]*\).*/\1/')
export MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
srun -N $SLURM_NNODES -n $SLURM_NNODES python -m torch.distributed.run --nnodes=$SLURM_NNODES --nproc_per_node=2 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT 06_train.py --checkpoint digits.pt
"""

"""A job step for each node, side by side; each is handed its number."""
# %% grade_id="job"
JOB = r"""#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --time=00:10:00
#SBATCH --output=digits-%j.txt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
export MASTER_ADDR=$(scontrol -o show node "$SLURM_JOB_NODELIST" | head -1 | sed 's/.*NodeAddr=\([^ ]*\).*/\1/')
export MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
i=0
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    srun --nodes=1 --ntasks=1 -w "$node" torchrun --nnodes "$SLURM_NNODES" --node-rank $i --nproc-per-node 2 \
        --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" 06_train.py --checkpoint digits.pt &
    i=$((i + 1))
done
wait
"""

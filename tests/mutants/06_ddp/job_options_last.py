"""The options of torchrun stand behind the script, which gets them.

fails: job/nodes, job/meeting
shows: The options of torchrun must be before the script
points: 17
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
srun bash -c 'torchrun 06_train.py --checkpoint digits.pt --nnodes $SLURM_NNODES --node-rank $SLURM_NODEID --nproc-per-node 2 --master-addr $MASTER_ADDR --master-port $MASTER_PORT'
"""

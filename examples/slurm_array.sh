#!/usr/bin/env bash
# One campaign on a SLURM cluster, without Ray:
#
#   sbatch examples/slurm_array.sh campaigns/doorkey-levels.toml /shared/runs
#
# Every task of the array is a worker. It trains the runs that no other task is training, until none is left.
# Submit it again to continue, or a second time to add workers. docs/campaigns.md says more.
#
# How many workers, the runs that each trains at a time, the memory per run, and the hours:
#SBATCH --array=0-9
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=4G
#SBATCH --time=12:00:00
# A worker that loses its node starts again, and continues its runs from their checkpoints:
#SBATCH --requeue
#SBATCH --job-name=scout
#SBATCH --output=scout-%A_%a.log

set -euo pipefail
file=${1:?"usage: sbatch $0 CAMPAIGN.toml SHARED_FOLDER"}
out=${2:?"usage: sbatch $0 CAMPAIGN.toml SHARED_FOLDER"}

# Make `scout` available here, for example: source "$HOME/scout/.venv/bin/activate"

exec scout campaign "$file" --out "$out" --workers "${SLURM_CPUS_PER_TASK:-1}" --threads 1 --no-wait

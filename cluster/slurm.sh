#!/bin/bash
#SBATCH --job-name=trunchray
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-cpu=2G
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#
# A Ray cluster for one run, on the nodes of one Slurm job; the arguments are those of `trunchray run`:
#
#   sbatch cluster/slurm.sh run.yaml --out /shared/runs
#
# trunchray is installed, or in an activated environment, where all nodes see it; the models' keys are in the environment
# of `sbatch`. A job that loses a node is queued again by Slurm, and goes on; when its time is up, give the same command.
set -euo pipefail

port=$((20000 + SLURM_JOB_ID % 10000))
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)  # which reads to the end: pipes that break fail
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 RAY_TMPDIR=/tmp/trunchray-$SLURM_JOB_ID
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN

# One processor of the first node is the driver's.
srun --nodes=1 --ntasks=1 --overlap --nodelist="$head" bash -c \
  'mkdir -p "$RAY_TMPDIR" && exec ray start --head --port="$1" --num-cpus="$2" --include-dashboard=false --block' \
  head "$port" "$((SLURM_CPUS_PER_TASK - 1))" &
until ray health-check --address "$head:$port" 2>/dev/null; do sleep 2; done

if ((SLURM_JOB_NUM_NODES > 1)); then
  srun --nodes="$((SLURM_JOB_NUM_NODES - 1))" --ntasks="$((SLURM_JOB_NUM_NODES - 1))" --exclude="$head" bash -c \
    'mkdir -p "$RAY_TMPDIR" && exec ray start --address="$1" --num-cpus="$2" --block' \
    worker "$head:$port" "$SLURM_CPUS_PER_TASK" &
fi

driver="" stopped="" woken=1
trap 'stopped=1 woken=1; [[ -z $driver ]] || kill -TERM "$driver" 2>/dev/null || true' TERM
trunchray run "$@" --address "$head:$port" &
driver=$!
[[ -z $stopped ]] || kill -TERM "$driver" 2>/dev/null || true
# A signal ends a wait before the driver has ended, which stores what is finished and takes ten seconds at most for it.
# It may also have ended by the time one looks: bash remembers how, so that waiting once more is always right.
while [[ -n $woken ]]; do
  woken="" code=0
  wait "$driver" || code=$?
done
exit "$code"

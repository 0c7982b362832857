#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command while every node of the allocation is a node of a Kubernetes cluster, without root:
#
#     sbatch slurm-cluster.sh kubectl create -f job.yaml
#
# NODENS_JOIN is the kubeconfig of the nodes, NODENS_PROGRAMS the directory with the programs of Kubernetes and nodens,
# KUBECONFIG that of the command. NODENS_UP has further options of `nodens-rootless up`.
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --time=60
set -eu
: "${NODENS_JOIN:?is not set: the kubeconfig of the nodes}" "${NODENS_PROGRAMS:?is not set: where kubelet and kube-proxy are}"
PATH=$NODENS_PROGRAMS:$PATH
export PATH NODENS_JOIN NODENS_PROGRAMS NODENS_UP

# Ends the command with all that it has started, then the nodes by a signal to their launchers (srun itself would kill them),
# and removes them from the cluster.
leave() {
        trap '' USR1
        test -z "$command" || kill -- "-$command" 2>/dev/null || true
        scancel --signal=TERM "$SLURM_JOB_ID.0" || true
        wait "$step" || true
        kubectl delete node --selector "slurm-job=$SLURM_JOB_ID" --ignore-not-found || true
}
step='' command=''
trap leave EXIT
trap 'exit 143' TERM INT
trap 'echo "a node of the job has ended; ending the others and the command" >&2; exit 1' USR1

# One task on each node. Slurm's cgroups are not the user's, so pods have no limits of their own: those of the job hold for all.
# An ephemeral node ends with its task and leaves no file. If one fails, srun ends the others, and this script gets a signal.
{
        srun --ntasks-per-node=1 --kill-on-bad-exit=1 sh -c '
                exec nodens-rootless up --foreground --ephemeral --no-cgroups --name "job-$SLURM_JOB_ID" \
                        --node-name "$(hostname)-$SLURM_JOB_ID" --labels "slurm-job=$SLURM_JOB_ID" \
                        --pod-cidr "10.244.$SLURM_NODEID.0/24" ${NODENS_UP:-}' || true
        kill -s USR1 $$
} &
step=$!

# Continues when all nodes are Ready.
while [ "$(kubectl get nodes --selector "slurm-job=$SLURM_JOB_ID" --no-headers 2>/dev/null | grep -cw Ready)" -lt "$SLURM_JOB_NUM_NODES" ]; do
        sleep 1
done
setsid "$@" &
command=$!
wait "$command"

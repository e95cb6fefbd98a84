#!/usr/bin/env bash
# Runs the tests on a real cluster, which they start on this machine and remove again:
# everything is built from source first. It needs root, and from Debian:
#
#   apt-get install containerd runc containernetworking-plugins nftables iproute2
#
# Arguments go to go test: hack/e2e-cluster.sh -run TestCluster/Upgrade
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
unset KUBEBUILDER_ASSETS # the parts of a cluster have to be of one version
hack/build-tools.sh etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl \
	helm traefik prometheus podinfo manager kubectl-weightedrollout testsummary
export WEIGHTEDROLLOUT_E2E_CLUSTER=1 WEIGHTEDROLLOUT_BIN=$root/bin
go test -json -count=1 -timeout 40m "$@" ./test/e2e/cluster | bin/testsummary -stream /test/e2e

#!/usr/bin/env bash
# Runs the tests on a real cluster, which they start on this machine and remove again:
# everything is built from source first. It needs root, and from Debian:
#
#   apt-get install containerd runc containernetworking-plugins nftables iproute2
#
# With GIVEN_KUBECONFIG they run on the cluster that this file names instead, and need
# nothing of this machine. They install what they need there, and remove it at the end;
# a cluster that has any of it already is refused. The cluster has to pull IMAGE, the
# controller's image, and Traefik, Prometheus and podinfo from the registries of their
# projects. What takes a cluster of its own is left out.
#
# Arguments go to go test: hack/e2e-cluster.sh -run TestCluster/Upgrade
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
unset KUBEBUILDER_ASSETS # the parts of a cluster have to be of one version
export WEIGHTEDROLLOUT_BIN=$root/bin
if [[ ${GIVEN_KUBECONFIG:-} ]]; then
	if [[ ! ${IMAGE:-} ]]; then
		echo "IMAGE says which image of the controller the cluster is to run, such as" >&2
		echo "  make e2e-cluster KUBECONFIG=$GIVEN_KUBECONFIG IMAGE=registry.example.com/weightedrollout:dev" >&2
		echo "make image makes one: push it to where the cluster finds it." >&2
		exit 2
	fi
	KUBECONFIG=$(realpath -e -- "$GIVEN_KUBECONFIG")
	export KUBECONFIG WEIGHTEDROLLOUT_E2E_IMAGE=$IMAGE WEIGHTEDROLLOUT_E2E_CLUSTER=given
	cd "$root"
	hack/build-tools.sh kubectl helm testsummary
else
	if [[ ${KUBECONFIG:-} ]]; then
		echo "starting a cluster here; KUBECONFIG of the environment is not used, so that nobody's"
		echo "cluster is touched by mistake: make e2e-cluster KUBECONFIG=$KUBECONFIG runs on that one"
	fi
	export WEIGHTEDROLLOUT_E2E_CLUSTER=1
	cd "$root"
	hack/build-tools.sh etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl \
		helm traefik prometheus podinfo manager kubectl-weightedrollout testsummary
fi
go test -json -count=1 -timeout 60m "$@" ./test/e2e/cluster | bin/testsummary -stream /test/e2e

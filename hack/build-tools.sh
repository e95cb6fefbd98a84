#!/usr/bin/env bash
# Builds the named programs from source into bin/: each tool from a module of its
# own under tools/, and manager, demo, image and others from this repository. A tool
# that is there and up to date is left alone.
#
#   hack/build-tools.sh etcd kube-apiserver traefik
#   hack/build-tools.sh manager
#
# With KUBEBUILDER_ASSETS set, the etcd, kube-apiserver and kubectl found there
# are used instead of being built.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/bin
export CGO_ENABLED=0 GOWORK=off

die() {
	echo "tools: $*" >&2
	exit 1
}

# Sets where the program named $1 comes from: the folder of its module, its main
# package, its version, about how many seconds a cold build takes on 2 cores
# (download included), and the flags of go build. $own is set for the programs of
# this repository, which have no stamp: go itself knows whether they changed.
describe() {
	dir=$root/tools/$1 own='' tags='' ldflags='-s -w'
	case $1 in
	cyclonedx-gomod) secs=60 module=github.com/CycloneDX/cyclonedx-gomod pkg=$module/cmd/cyclonedx-gomod ;;
	controller-gen) secs=90 module=sigs.k8s.io/controller-tools pkg=$module/cmd/controller-gen ;;
	etcd) secs=60 module=go.etcd.io/etcd/server/v3 pkg=$module ;;
	golangci-lint) secs=300 module=github.com/golangci/golangci-lint/v2 pkg=$module/cmd/golangci-lint ;;
	kube-apiserver) secs=270 dir=$root/tools/kubernetes module=k8s.io/kubernetes pkg=$module/cmd/kube-apiserver ;;
	kube-controller-manager) secs=180 dir=$root/tools/kubernetes module=k8s.io/kubernetes pkg=$module/cmd/kube-controller-manager ;;
	kube-proxy) secs=30 dir=$root/tools/kubernetes module=k8s.io/kubernetes pkg=$module/cmd/kube-proxy ;;
	kube-scheduler) secs=10 dir=$root/tools/kubernetes module=k8s.io/kubernetes pkg=$module/cmd/kube-scheduler ;;
	kubelet) secs=40 dir=$root/tools/kubernetes module=k8s.io/kubernetes pkg=$module/cmd/kubelet ;;
	helm) secs=90 module=helm.sh/helm/v4 pkg=$module/cmd/helm ;;
	kubectl) secs=60 dir=$root/tools/kubernetes module=k8s.io/kubernetes pkg=$module/cmd/kubectl ;;
	podinfo) secs=20 module=github.com/stefanprodan/podinfo pkg=$module/cmd/podinfo ;;
	prometheus) secs=100 module=github.com/prometheus/prometheus pkg=$module/cmd/prometheus tags=remove_all_sd ;;
	traefik) secs=300 module=github.com/traefik/traefik/v3 pkg=$module/cmd/traefik ;;
	manager) secs=150 own=1 pkg=./cmd/manager ;;
	kubectl-weightedrollout) secs=60 own=1 pkg=./cmd/kubectl-weightedrollout ;;
	demo) secs=10 own=1 pkg=./test/demo ;;
	image) secs=20 own=1 pkg=./hack/image ;;
	release) secs=20 own=1 pkg=./hack/release ;;
	testsummary) secs=5 own=1 pkg=./hack/testsummary ;;
	*) die "there is nothing named '$1'" ;;
	esac
	if [[ $own ]]; then
		dir=$root version=$(git -C "$root" describe --tags --always --dirty 2>/dev/null || echo dev)
		ldflags+=" -X main.version=$version"
	else
		version=$(awk -v m="$module" '$1 == m && $2 ~ /^v/ { print $2; exit }' "$dir/go.mod")
	fi
	if [[ $dir == */kubernetes ]]; then
		local v=k8s.io/component-base/version major=${version#v} minor=${version#*.}
		ldflags+=" -X $v.gitVersion=$version -X $v.gitMajor=${major%%.*} -X $v.gitMinor=${minor%%.*}"
	fi
	flags=(-trimpath -buildvcs=false -tags="$tags" -ldflags="$ldflags")
}

# What the binary is made from, as one hash: the same hash, the same binary.
fingerprint() {
	{
		cat "$dir/go.mod" "$dir/go.sum"
		echo "$pkg ${flags[*]}"
		go -C "$dir" env GOVERSION GOOS GOARCH
	} | git hash-object --stdin
}

# Builds the program named $1, saying so and how long it has been going.
build() {
	local name=$1 log=$bin/logs/$1.log tmp=$bin/.$1.$$ from=$SECONDS beat=30 rc=0 took said count columns
	local title="tools: $name $version"
	if [[ $own ]]; then title="build: $name $version"; fi
	if [[ ! $own && ! -t 1 ]]; then echo "$title: building, about $secs s when nothing is cached"; fi
	columns=$(tput cols 2>/dev/null || echo 80)
	: >"$log"
	set -m # a process group of its own, so that stop() reaches the compilers too
	go build -C "$dir" -v "${flags[@]}" -o "$tmp" "$pkg" </dev/null >"$log" 2>&1 &
	child=$! unfinished=$tmp
	set +m
	while kill -0 "$child" 2>/dev/null; do
		took=$((SECONDS - from))
		count=$(grep -vc '^go: ' "$log" || true)
		said="$count packages compiled"
		if ((count == 0)) && [[ -s $log ]]; then said='getting the modules'; fi
		said="$title: $took s of about $secs, $said"
		if [[ -t 1 ]]; then
			printf '\r\033[K%s' "${said:0:$((columns - 1))}"
		elif ((took >= beat)); then
			echo "$said"
			beat=$((took + 30))
		fi
		sleep 0.5
	done
	wait "$child" || rc=$?
	child='' took=$((SECONDS - from))
	if [[ -t 1 ]]; then printf '\r\033[K'; fi
	if ((rc != 0)); then
		{
			echo "$title: FAILED after $took s. The end of $log:"
			grep -vE '^[A-Za-z0-9._/~-]+$' "$log" | tail -n 20 | sed 's/^/    /' || true
			if [[ ! $own ]]; then
				echo "tools: if a download failed, check the network and GOPROXY ($(go env GOPROXY));"
				echo "tools: if the disk is full, free some: all the tools need about 15 GB of caches;"
				echo "tools: then run the same command again: what was downloaded and compiled is kept."
			fi
		} >&2
		exit 1
	fi
	mv -f "$tmp" "$bin/$name"
	unfinished=''
	if [[ ! $own ]]; then fingerprint >"$bin/.$name.stamp"; fi
	echo "$title: built in $took s"
}

child='' unfinished=''
stop() {
	if [[ -n $child ]]; then
		kill -INT -- "-$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	if [[ -n $unfinished ]]; then rm -f "$unfinished"; fi
}
trap stop EXIT
trap 'echo; echo "stopped: what was compiled is kept" >&2; exit 130' INT TERM

(($# > 0)) || die "usage: hack/build-tools.sh NAME..."
command -v go >/dev/null || die "go is not installed: see https://go.dev/doc/install"
mkdir -p "$bin/logs"

assets=${KUBEBUILDER_ASSETS:-}
if [[ $assets -ef $bin ]]; then assets=''; fi
names=() given=()
for name in "$@"; do
	case $assets:$name in
	?*:etcd | ?*:kube-apiserver)
		[[ -x $assets/$name ]] || die "KUBEBUILDER_ASSETS is set, but $assets/$name is not there: unset it to have $name built"
		given+=("$name")
		;;
	?*:kubectl) if [[ -x $assets/kubectl ]]; then given+=(kubectl); else names+=(kubectl); fi ;;
	*) names+=("$name") ;;
	esac
done
if ((${#given[@]} > 0)); then
	echo "tools: ${given[*]}: those in KUBEBUILDER_ASSETS ($assets) are used"
fi

# Sets missing to the tools that are not there or out of date, total to the
# seconds that building them takes, tools to how many tools were asked for, and
# owned to the programs of this repository.
look() {
	missing=() owned=() total=0 tools=0
	local name
	for name in ${names[@]+"${names[@]}"}; do
		describe "$name"
		if [[ $own ]]; then
			owned+=("$name")
			continue
		fi
		tools=$((tools + 1))
		if [[ -x $bin/$name && $(cat "$bin/.$name.stamp" 2>/dev/null) == "$(fingerprint)" ]]; then continue; fi
		missing+=("$name")
		total=$((total + secs))
	done
}

look
if ((${#missing[@]} > 0)) && command -v flock >/dev/null; then
	exec 9>"$bin/.lock"
	flock -n 9 || { echo "tools: waiting for another build of the tools to end"; flock 9; }
	look # the other build may have built them
fi
if ((${#missing[@]} > 0)); then
	echo "tools: building ${#missing[@]} of $tools from source, once (${missing[*]}): about $(((total + 59) / 60)) min on 2 cores"
	for name in "${missing[@]}"; do
		rm -f "$bin/.$name".[0-9]*
		describe "$name"
		build "$name"
	done
	echo "tools: all present after $SECONDS s"
elif ((tools > 1)); then
	echo "tools: all $tools present"
fi
exec 9>&-
for name in ${owned[@]+"${owned[@]}"}; do
	describe "$name"
	build "$name"
done

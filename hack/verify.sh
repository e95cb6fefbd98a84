#!/usr/bin/env bash
# Fails if generating, formatting or tidying would change a file, or if the
# manifests do not render. It works on a copy of the files as they are now,
# committed or not, so the tree itself is never changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

git ls-files --cached --others --exclude-standard -z |
	while IFS= read -r -d '' file; do
		if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
	done | tar --null --files-from=- -cf - | tar -xf - -C "$copy"
mkdir -p bin
ln -sfn "$PWD/bin" "$copy/bin"

# A hook's GIT_DIR and the like must not lead back here.
# shellcheck disable=SC2046 # a list of names
unset $(git rev-parse --local-env-vars)
cd "$copy"
git init -q
git add --all
before=$(git write-tree)
make --no-print-directory generate manifests fmt tidy
git add --all
if ! git --no-pager diff --cached --exit-code "$before"; then
	echo "verify: the files above are not up to date: run 'make generate manifests tidy fmt' and commit" >&2
	exit 1
fi
"${KUBECTL:-bin/kubectl}" kustomize config/default >/dev/null || {
	echo "verify: config/default does not render" >&2
	exit 1
}
echo "verify: everything that is generated or formatted is up to date"

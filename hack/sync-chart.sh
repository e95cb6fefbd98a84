#!/usr/bin/env bash
# Copies into the chart what it shares with config/: the CustomResourceDefinition, the
# rules of the controller's role, and the policy on approvals. A chart can only read
# files of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=charts/weightedrollout/files
mkdir -p "$files"
cp config/crd/bases/weightedrollout.dev_weightedrollouts.yaml "$files/"
cp config/rbac/role.yaml "$files/role.yaml"
cp config/approval/policy.yaml "$files/approvals.yaml"

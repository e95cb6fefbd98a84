# Everything that runs here is built from source into bin/: besides Go, make and
# git nothing needs to be installed, but gcc for the race detector of the tests.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN    := $(CURDIR)/bin
ASSETS := $(abspath $(or $(KUBEBUILDER_ASSETS),$(BIN)))
KUBECTL = $(or $(wildcard $(ASSETS)/kubectl),$(BIN)/kubectl)
BUILD  := hack/build-tools.sh

# What the demo and the end-to-end tests run, and what only the tests do.
TOOLS      := etcd kube-apiserver kubectl traefik prometheus podinfo
TEST_TOOLS := $(TOOLS) kube-controller-manager helm

# Those that the demo has; with SCENARIO empty or all it plays every one.
SCENARIOS    := good bad slow
SCENARIO     ?=
DEMO_KEEP    ?=
IMAGE        ?=
FUZZTIME     ?= 30s
RAPID_CHECKS ?= 100000

TEST_ENV   = KUBEBUILDER_ASSETS="$(ASSETS)" WEIGHTEDROLLOUT_BIN="$(BIN)" CGO_ENABLED=1
GOTEST     = $(TEST_ENV) go test -json -race -timeout 40m
LIGHT      = $$(go list ./... | grep -v /test/)
# The tests in test/ start an API server and more: one package at a time.
HEAVY      = -count=1 -p 1
SUMMARY    = $(BIN)/testsummary -stream /test/e2e

##@ Try it

.PHONY: demo
demo: ## Run three canary rollouts here: SCENARIO=good|bad|slow for one of them, DEMO_KEEP=1 to leave it running.
	@$(if $(filter-out $(SCENARIOS) all both,$(SCENARIO))$(word 2,$(SCENARIO)),echo 'make demo: there is no scenario "$(SCENARIO)": choose one of $(SCENARIOS) all' >&2; exit 1)
	@$(BUILD) $(TOOLS) manager demo
	@exec bin/demo --bin bin $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(filter-out 0,$(DEMO_KEEP)),--keep)

.PHONY: build
build: ## Build the controller as bin/manager.
	@$(BUILD) manager

.PHONY: plugin
plugin: ## Build the kubectl plugin as bin/kubectl-weightedrollout.
	@$(BUILD) kubectl-weightedrollout
	@echo 'put bin/ on your PATH: export PATH="$(BIN):$$PATH"; then: kubectl weightedrollout --help'

.PHONY: image
image: ## Make the controller's container image for this machine: dist/image.tar, for docker load or ctr images import.
	@$(BUILD) manager image
	@mkdir -p dist
	bin/image --binary bin/manager --entrypoint /manager --tag ghcr.io/weightedrollout/weightedrollout:dev --out dist/image.tar

.PHONY: install-file
install-file: ## Write all that a cluster needs to dist/install.yaml.
	@$(BUILD) kubectl
	@mkdir -p dist
	@$(KUBECTL) kustomize config/default >dist/.install.yaml && mv dist/.install.yaml dist/install.yaml
	@echo "dist/install.yaml: written"

##@ Test

.PHONY: test
test: gcc ## Run every test under the race detector, the end-to-end ones last.
	@$(BUILD) $(TEST_TOOLS) manager demo testsummary
	@pkgs=$(LIGHT); { rc=0; $(GOTEST) $$pkgs || rc=1; $(GOTEST) $(HEAVY) ./test/... || rc=1; exit $$rc; } | $(SUMMARY) -cases docs/faults.md

.PHONY: test-unit
test-unit: gcc ## Run the tests that start no other process.
	@$(BUILD) testsummary
	@pkgs=$$(go list ./... | grep -v /test/e2e); $(GOTEST) -short $$pkgs | $(SUMMARY)

.PHONY: test-e2e
test-e2e: gcc ## Run the end-to-end tests only: real API server, gateway and Prometheus.
	@$(BUILD) $(TEST_TOOLS) manager demo testsummary
	@$(GOTEST) $(HEAVY) ./test/e2e/... | $(SUMMARY)

.PHONY: e2e-cluster
e2e-cluster: ## Run the tests on a real cluster, started here (root, containerd), or a given one: KUBECONFIG=file IMAGE=of-the-controller. RUN=TestCluster/Upgrade for one of them.
	@GIVEN_KUBECONFIG='$(if $(findstring command,$(origin KUBECONFIG)),$(KUBECONFIG))' IMAGE='$(IMAGE)' hack/e2e-cluster.sh $(if $(RUN),-run '$(RUN)')

.PHONY: test-browser
test-browser: ## Check the dashboard in Chromium: needs node, npm and chromium.
	@$(BUILD) etcd kube-apiserver
	@npm ci --prefix hack/screenshots --no-audit --no-fund
	@$(TEST_ENV) WEIGHTEDROLLOUT_BROWSER=1 go test -count=1 -v ./test/e2e/dashboard

.PHONY: test-long
test-long: gcc ## Run the tests that depend on chance WEIGHTEDROLLOUT_REPEAT (20) times, each with another seed.
	@$(BUILD) $(TOOLS) manager testsummary
	@WEIGHTEDROLLOUT_REPEAT=$${WEIGHTEDROLLOUT_REPEAT:-20} $(GOTEST) $(HEAVY) -run '^TestSlowAPIServer$$' ./test/e2e/played | $(SUMMARY)

.PHONY: nightly
nightly: gcc ## Check the properties on RAPID_CHECKS (100000) cases each, then fuzz: hours.
	@$(BUILD) testsummary
	@pkgs=$$(grep -rl --include='*_test.go' '"pgregory.net/rapid"' . | xargs -n 1 dirname | sort -u); \
	$(TEST_ENV) go test -json -race -count=1 -timeout 12h $$pkgs -rapid.checks=$(RAPID_CHECKS) | $(SUMMARY)
	@$(MAKE) --no-print-directory fuzz

.PHONY: fuzz
fuzz: ## Run each fuzz function for FUZZTIME (30s).
	@found=$$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . || true); \
	[[ $$found ]] || { echo "there is no fuzz function"; exit 0; }; \
	while IFS=: read -r file func; do \
		echo "$$(dirname "$$file"): $${func#func }, $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done <<<"$$found"

.PHONY: bench
bench: ## Run the benchmarks.
	go test -run '^$$' -bench . -benchmem ./internal/...

.PHONY: bench-health
bench-health: ## Measure false rollbacks and missed canaries, beside other tools' rules.
	go run ./test/bench/health

.PHONY: gcc
gcc:
	@command -v $${CC:-gcc} >/dev/null || { echo "make: the race detector of the tests needs gcc: apt-get install gcc libc6-dev" >&2; exit 1; }

##@ Change it

.PHONY: generate
generate: ## Generate the DeepCopy methods of the API types.
	@$(BUILD) controller-gen
	bin/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Generate the CustomResourceDefinition, its reference and the controller's role.
	@$(BUILD) controller-gen
	bin/controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	bin/controller-gen rbac:roleName=weightedrollout-manager paths=./controllers/... output:rbac:dir=config/rbac
	hack/sync-chart.sh
	go run ./hack/apidoc config/crd/bases/weightedrollout.dev_weightedrollouts.yaml docs/reference.md

.PHONY: fmt
fmt: ## Format the Go code.
	@$(BUILD) golangci-lint
	bin/golangci-lint fmt ./...

.PHONY: tidy
tidy: ## Tidy the go.mod of this module and of each one in tools/.
	@for dir in . tools/*/; do echo "go mod tidy: $$dir"; GOWORK=off go -C "$$dir" mod tidy; done

.PHONY: lint
lint: ## Run golangci-lint, and shellcheck where it is installed.
	@$(BUILD) golangci-lint
	bin/golangci-lint run ./...
	@if command -v shellcheck >/dev/null; then shellcheck hack/*.sh .ci/run; \
	else echo "lint: shellcheck is not installed: the scripts were not checked"; fi

.PHONY: verify
verify: ## Fail if something that is generated or formatted is not up to date.
	@$(BUILD) controller-gen golangci-lint kubectl
	@KUBECTL="$(KUBECTL)" hack/verify.sh

.PHONY: screenshots
screenshots: ## Take the pictures in docs/images from a real run: needs node, npm, chromium and script.
	@$(BUILD) $(TOOLS) manager demo kubectl-weightedrollout
	@npm ci --prefix hack/screenshots --no-audit --no-fund
	@WEIGHTEDROLLOUT_BIN="$(BIN)" node hack/screenshots/real.mjs docs/images

##@ Release it

RELEASE_TOOLS := helm kubectl image cyclonedx-gomod release

.PHONY: release
release: ## Make everything that a release consists of in dist/release, and publish nothing: VERSION=0.2.0.
	@$(if $(VERSION),,echo "make release: say which: make release VERSION=0.2.0" >&2; exit 1)
	@$(BUILD) $(RELEASE_TOOLS)
	@bin/release --version "$(VERSION)"

.PHONY: release-rehearsal
release-rehearsal: ## Make a release of what is here, for this platform only, and check it.
	@$(BUILD) $(RELEASE_TOOLS)
	@bin/release --version 0.0.0-rehearsal --out dist/rehearsal --this-platform --allow-dirty
	@cd dist/rehearsal && sha256sum --quiet --check checksums.txt && echo "the checksums hold"
	@tar -xOf dist/rehearsal/kubectl-weightedrollout_*.tar.gz kubectl-weightedrollout >dist/rehearsal/plugin && chmod +x dist/rehearsal/plugin && dist/rehearsal/plugin version
	@bin/helm template rehearsal dist/rehearsal/weightedrollout-*.tgz >/dev/null && echo "the chart renders"

##@ Clean up

.PHONY: clean
clean: ## Remove what the targets above wrote, but not the tools.
	rm -rf dist coverage .demo

.PHONY: clean-tools
clean-tools: ## Remove bin/: the next run builds the tools again.
	rm -rf bin

.PHONY: help
help: ## Show this.
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

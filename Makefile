# Everything is built from source by the Go tool, into $(BIN).
# `make` alone says what there is to do.

BIN          := bin
CLUSTER_DIR  ?= .cluster
# Kubernetes calls itself v0.0.0-master unless it is told its version.
KUBE_VERSION := $(shell sed -n 's|.*k8s.io/kubernetes v\([0-9.]*\).*|\1|p' test/tools/kubernetes/go.mod)
KUBE_PACKAGE := k8s.io/component-base/version
KUBE_LDFLAGS := -s -w -X $(KUBE_PACKAGE).gitVersion=v$(KUBE_VERSION) \
	-X $(KUBE_PACKAGE).gitMajor=$(word 1,$(subst ., ,$(KUBE_VERSION))) \
	-X $(KUBE_PACKAGE).gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION)))

GOLANGCI     := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# The SDK is for others to call, so what nobody here calls is not dead.
DEADCODE     := go run golang.org/x/tools/cmd/deadcode@v0.52.0 -test -tags faults -filter "update-preflight/(cmd|collector|examples|runner|signature|test)"
MODULES      := . preflight-sdk

.PHONY: help
help: ## say what there is to do
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | expand -t 18

## The tools that the local cluster is made of

.PHONY: tools
tools: system-packages $(BIN)/.containerd $(BIN)/.registry $(BIN)/.pause $(BIN)/.extras $(BIN)/.kubernetes ## build the local cluster's binaries

.PHONY: system-packages
system-packages: ## install what the local cluster needs of the distribution
	@test/tools/system-packages.sh

# One stamp for each module of tools, since its binaries are built together.
$(BIN)/.containerd: test/tools/containerd/go.mod test/tools/containerd/go.sum
	@echo "building containerd and the CNI plugins (about a minute the first time)"
	@CGO_ENABLED=0 go build -C test/tools/containerd -trimpath -ldflags "-s -w" -o $(abspath $(BIN))/ tool
	@touch $@

$(BIN)/.registry: test/tools/registry/go.mod test/tools/registry/go.sum
	@echo "building the registry (a few seconds the first time)"
	@CGO_ENABLED=0 go build -C test/tools/registry -trimpath -ldflags "-s -w" -o $(abspath $(BIN))/ tool
	@touch $@

$(BIN)/.pause: test/cluster/pause/main.go
	@echo "building the pause program"
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $(BIN)/pause ./test/cluster/pause
	@touch $@

$(BIN)/.extras: test/tools/extras/go.mod test/tools/extras/go.sum
	@echo "building Prometheus and kwok (about four minutes on two cores the first time)"
	@CGO_ENABLED=0 go build -C test/tools/extras -trimpath -ldflags "-s -w" -o $(abspath $(BIN))/ tool
	@touch $@

$(BIN)/.kubernetes: test/tools/kubernetes/go.mod test/tools/kubernetes/go.sum
	@echo "building Kubernetes and etcd (about six minutes on two cores the first time)"
	@CGO_ENABLED=0 go build -C test/tools/kubernetes -trimpath -ldflags "$(KUBE_LDFLAGS)" -o $(abspath $(BIN))/ tool
	@touch $@

## A cluster to try things on

.PHONY: cluster
cluster: tools ## leave a local cluster running, and print its kubeconfig
	@echo "building and running test/cluster/local-cluster"
	@go run ./test/cluster/local-cluster up --dir $(CLUSTER_DIR)

.PHONY: cluster-down
cluster-down: ## end the local cluster, also after a crash, and remove all of it
	@go run ./test/cluster/local-cluster down --dir $(CLUSTER_DIR)

## The product

.PHONY: build
build: ## build oc-preflight
	@CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/oc-preflight

.PHONY: demo
demo: tools build ## run a preflight on a real cluster: Blocked, its remedies, Ready (KEEP=dir leaves it running)
	@go run ./test/story/demo --keep "$(KEEP)"

.PHONY: test
test: tools build ## run every test, on real clusters
	@for module in $(MODULES); do echo "go test -race ./... in $$module"; (cd $$module && go test -race -timeout 45m ./...) || exit 1; done
	@$(MAKE) --no-print-directory test-faults

# It has a build tag since it takes a cluster apart, and wants the machine to
# itself.
.PHONY: test-faults
test-faults: tools build ## break everything under a run, and print what it survived
	@echo "go test -tags faults ./test/e2e/faults"
	@go test -count=1 -v -tags faults -timeout 40m -run TestFaults ./test/e2e/faults

.PHONY: bench
bench: tools build ## print the numbers: time to verdict against kubectl, up to 5 000 checks; what a release costs to verify and read; what 500 targets cost
	@go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./runner/payload ./test/e2e ./test/narrative
	@go test -run '^$$' -bench Scale -benchtime 1x -timeout 2h ./test/e2e/scale

.PHONY: lint
lint: ## check style, format and dead code
	@for module in $(MODULES); do echo "golangci-lint in $$module"; (cd $$module && $(GOLANGCI) run ./... && $(GOLANGCI) fmt --diff) || exit 1; done
	@dead="$$($(DEADCODE) ./...)" && test -z "$$dead" || { echo "$$dead"; exit 1; }

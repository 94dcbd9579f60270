# The Go tool builds everything from source, into $(BIN). `make` alone lists the
# targets.

BIN         := bin
CLUSTER_DIR ?= .cluster
# The vulnerability database of the Go project, or a copy of it: file:///DIRECTORY.
VULNDB      ?= https://vuln.go.dev
# The switches that "make controller-demo" shows; none with SWITCHES=.
SWITCHES    := cluster-operator,admission-deny
# Where "make image" pushes to.
REGISTRY    :=
# Requirements to add or upgrade with "make tidy"; GNU make predefines the variable.
GET         :=
# What "make sign" signs with: a key of cosign (a file, or KMS://...); without one it signs
# keyless, by the identity of the workflow, in the transparency log. BUILDER is the URI of
# the builder, which the provenance names.
KEY         :=
BUILDER     :=
# Not empty: run only what the change since the last green run concerns, as CI does.
CHANGED     :=

# The same flags for every build, so that the product, the cluster and the tests share the
# build cache. Programs have no debug information and no symbol table, which makes linking a
# third faster; stack traces need neither. grpcnotrace leaves out grpc's debug pages, which
# make the linker keep every exported method.
export GOFLAGS     := $(strip $(shell go env GOFLAGS 2>/dev/null) -trimpath -gcflags=all=-dwarf=false -ldflags=-s -tags=grpcnotrace)
export CGO_ENABLED := 0

# The first run compiles all packages, so the limit is generous.
GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# The newest version whose requirements the module proxy has. syft writes the SBOMs.
GORELEASER := go run github.com/goreleaser/goreleaser/v2@v2.15.1
COSIGN := go run github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
# The SDK is a library for others, so functions that only they call are not dead.
DEADCODE := go run golang.org/x/tools/cmd/deadcode@v0.52.0 -test -filter "update-preflight/(cmd|collector|examples|runner|signature|test)"
# The generated files of the API: DeepCopy, and the CustomResourceDefinition.
CRD := manifests/crd
API := runner/trigger/api/v1alpha1
CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=./$(API)
# The packages of every module of go.work.
PACKAGES := $(shell go list -m -f '{{.Dir}}/...' 2>/dev/null)

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | expand -t 18

## The programs of the local cluster

.PHONY: tools
tools: system-packages ## build everything that the demos and the tests run
	@go run ./test/build/programs -o $(BIN)

.PHONY: release-tools
release-tools: system-packages ## build everything that the tests of a release run
	@go run ./test/build/programs -for release -o $(BIN)

.PHONY: system-packages
system-packages: ## install the packages of the distribution that the local cluster needs
	@test/tools/system-packages.sh

## A cluster to experiment with

.PHONY: cluster
cluster: tools ## start a local cluster with a ClusterVersion, leave it running, and print its kubeconfig
	@go run ./test/cluster/local-cluster up --dir $(CLUSTER_DIR)

.PHONY: cluster-down
cluster-down: ## stop the local cluster, also after a crash, and delete its files
	@go run ./test/cluster/local-cluster down --dir $(CLUSTER_DIR)

## The product

.PHONY: build
build: ## build oc-preflight
	@go build -o $(BIN)/ ./cmd/oc-preflight

.PHONY: demo
demo: ## show the verdict on an archive, then a preflight on a real cluster: Blocked, its remedies, Ready, a plan (KEEP=dir keeps the cluster, and its monitoring until Ctrl-C)
	@echo 'Building oc-preflight: with an empty cache, Go first compiles the program that builds the others.'
	@go run ./test/build/programs -for archive -o $(BIN)
	@printf '\n$$ bin/oc-preflight targets --archive examples/archive --to 4.19.1\n' && { $(BIN)/oc-preflight targets --archive examples/archive --to 4.19.1 || test $$? = 3; }
	@printf '\nThe same on a real cluster:\n'
	@test/tools/system-packages.sh
	@go run ./test/build/programs -for demo -o $(BIN)
	@$(BIN)/demo --keep "$(KEEP)"

.PHONY: controller-demo
controller-demo: system-packages ## install the controller on a real cluster: an offered update is Blocked, its remedies, Ready
	@go run ./test/build/programs -for controller-demo -o $(BIN)
	@$(BIN)/controller-demo --switches "$(SWITCHES)"

.PHONY: hosted-demo
hosted-demo: tools ## evaluate a hosted cluster (HyperShift) from its management cluster and its guest: Blocked, its remedies, Ready
	@go run ./test/story/hosted-demo

.PHONY: fleet-demo
fleet-demo: tools ## evaluate five clusters at once: four causes, one that does not answer, the remedies, Ready, a regression that closes the gate to the next wave
	@go run ./test/story/fleet-demo

.PHONY: image
image: ## build the image of the controller and push it to REGISTRY (host:port), without a container engine
	@go run ./test/build/image -registry "$(REGISTRY)"

.PHONY: bundle
bundle: ## write the OLM bundle and the catalog of VERSION=vX.Y.Z into bin/bundle; IMAGE=...@sha256:... is the controller, BUNDLE=...@sha256:... the pushed bundle (for OLM v1)
	@go run ./test/build/bundle -o $(BIN)/bundle -version "$(VERSION)" -image "$(IMAGE)" -bundle "$(BUNDLE)"

.PHONY: bench
bench: tools ## measure the time to a verdict against kubectl, up to 5 000 checks, and the cost of large releases, paths, archives, drains, fleets, rehearsals, and of "after"
	@go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./collector/updateplan/path ./cmd/oc-preflight/cli ./cmd/oc-preflight/decide ./cmd/oc-preflight/fleets ./runner/fleet/hub ./runner/inspection ./runner/payload ./runner/definition ./runner/rehearsal ./test/e2e ./test/commands
	@go test -run '^$$' -bench Scale -benchtime 1x -timeout 2h ./test/e2e/scale

## What must pass

.PHONY: surface
surface: ## print how much of each wing depends on what its packages export, against its budget and the last release
	@go run ./test/layout/surface

.PHONY: scope
scope: ## print what the change since the last green run concerns: what CHANGED=yes runs, and why
	@go run ./test/suite/run -scope

.PHONY: test
test: tools ## run the tests of every promise, those without a cluster first (CHANGED=yes: what the change since the last green run concerns)
	@go run ./test/suite/run $(if $(CHANGED),-changed)

.PHONY: test-unit
test-unit: ## run the tests that need no cluster
	@go run ./test/suite/run -only unit

.PHONY: test-race
test-race: tools ## run the tests of clients of Kubernetes, including tests with clusters, under the race detector (CHANGED=yes: as above)
	@go run ./test/suite/run -only race $(if $(CHANGED),-changed)

.PHONY: test-release
test-release: release-tools ## run the oracles and the tests of the released files (CHANGED=yes: as above)
	@go run ./test/suite/run -only release $(if $(CHANGED),-changed)

.PHONY: test-faults
test-faults: tools ## run only the tests of faults, and print what a run survives
	@go run ./test/suite/run -only faults

.PHONY: test-attacks
test-attacks: tools ## run only the attacks, and print what each reached and what was reported
	@go run ./test/suite/run -only attacks

.PHONY: lint
lint: ## check style, format, dead code, the modules, and known vulnerabilities
	@echo "golangci-lint" && $(GOLANGCI) run --allow-serial-runners --timeout 45m $(PACKAGES) && $(GOLANGCI) fmt --diff
	@echo "deadcode" && dead="$$($(DEADCODE) $(PACKAGES))" && test -z "$$dead" || { echo "$$dead"; exit 1; }
	@echo "generated files" && dir="$$(mktemp -d)" && $(CONTROLLER_GEN) output:dir="$$dir" output:crd:dir="$$dir" && \
		diff -u $(API)/zz_generated.deepcopy.go "$$dir/zz_generated.deepcopy.go" && diff -ru $(CRD) "$$dir" -x zz_generated.deepcopy.go -x kustomization.yaml; \
		stale=$$?; rm -rf "$$dir"; test $$stale = 0 || { echo "generated files are stale: run make generate"; exit 1; }
	@echo "modules" && go run ./test/modules/tidy
	@echo "govulncheck" && go run ./test/modules/vulncheck -db $(VULNDB)

.PHONY: generate
generate: ## write the generated files of the API
	@$(CONTROLLER_GEN) output:crd:dir=$(CRD)

.PHONY: tidy
tidy: ## make the modules tidy and require the same versions; GET="PATH@VERSION ..." adds or upgrades requirements
	@go run ./test/modules/tidy -write $(GET)

.PHONY: tag
tag: ## make the modules require each other at VERSION=vX.Y.Z, and print how to tag them
	@go run ./test/modules/release $(VERSION)

.PHONY: release
release: test-release ## build the files of a release into dist/: archives, checksums, SBOMs, krew manifest; without a version tag, of a snapshot
	@GOFLAGS= $(GORELEASER) release --clean --skip=publish $(if $(shell git tag --points-at HEAD --list 'v*'),,--snapshot)

.PHONY: sign
sign: ## sign the files of "make release": SHA256SUMS and their SLSA provenance, by KEY or keyless, for BUILDER
	@go run ./test/build/provenance -builder "$(BUILDER)" dist > dist/provenance.json || { rm -f dist/provenance.json; exit 1; }
	@cd dist && GOFLAGS= $(COSIGN) sign-blob --yes $(if $(KEY),--key "$(KEY)" --use-signing-config=false --tlog-upload=false) --bundle SHA256SUMS.sigstore.json SHA256SUMS > /dev/null
	@cd dist && GOFLAGS= $(COSIGN) attest-blob --yes $(if $(KEY),--key "$(KEY)" --use-signing-config=false --tlog-upload=false) --statement provenance.json --bundle provenance.sigstore.json SHA256SUMS > /dev/null

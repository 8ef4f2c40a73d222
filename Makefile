# krig's Makefile. `make` lists what it can do. The one prerequisite is a Go of
# the version that go.mod names; every target sets up the rest itself.

SHELL   := bash
CACHE   := $(HOME)/.cache/krig
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
ARCH    := $(shell go env GOARCH)
LINT_VERSION := 2.15.0
LINT    := $(CACHE)/bin/golangci-lint

# Packages whose tests are quick and full of goroutines run under the race
# detector; the others start real Kafka, or take times that it would falsify.
RACE := internal/agent internal/cli internal/experiment internal/remote internal/rundir bench/hoststat

GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false
BUILD_ID := -X krig/internal/agent.build=$(VERSION)
GO_TEST  := go test -timeout 20m

.DEFAULT_GOAL := help
.PHONY: help setup setup-test build demo test test-faults test-examples test-clouds test-machines bench lint clean tools packages packages-test lint-tool krig agent-amd64 agent-arm64

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what krig needs on this machine, build it, and fetch Kafka
	@$(MAKE) --no-print-directory -j4 packages build
	@bin/krig doctor --fetch

build: krig agent-amd64 agent-arm64 ## build bin/krig and bin/krig-agent for linux/amd64 and linux/arm64
	@ln -sfn krig-agent-linux-$(ARCH) bin/krig-agent

demo: setup ## stand Kafka up, load it, report: examples/demo.yaml
	bin/krig run examples/demo.yaml

test: setup-test ## vet and all tests that need no more than this machine (12 minutes)
	go vet -tags 'faults examples clouds' ./...
	$(GO_TEST) -race $(RACE:%=./%)
	$(GO_TEST) $$(go list ./... | grep -v -x -E '$(subst $() ,|,$(RACE:%=krig/%))')

test-faults: setup-test ## kill krig, its hosts and its parts at every stage
	@.ci/tier faults

test-examples: setup-test ## run every example for real and look at its results
	@.ci/tier examples

test-clouds: setup-test tools ## rigs by OpenTofu and Pulumi, and the user's own module
	@.ci/tier clouds

test-machines: setup-test ## hosts with a kernel of their own (fails: no test of this tier exists yet)
	@.ci/tier machines

bench: setup ## print the figures that README.md states
	go test -p 1 -run '^$$' -bench . -benchtime 1x -timeout 60m ./...

lint: lint-tool ## formatting, linters, sizes, the rules of import
	$(LINT) run ./...

tools: ## build OpenTofu and Pulumi into the cache, for engines terraform and pulumi (9 minutes the first time)
	@infra/tools/build tofu pulumi

clean: ## remove what was built here; runs and the cache stay
	rm -rf bin

# What the targets above are made of.

setup-test:
	@$(MAKE) --no-print-directory -j4 packages-test build
	@bin/krig doctor --fetch

packages:
	@.ci/packages lab

packages-test:
	@.ci/packages lab test

krig:
	@$(GO_BUILD) -ldflags '-X main.version=$(VERSION) $(BUILD_ID)' -o bin/krig ./cmd/krig

agent-amd64 agent-arm64: agent-%:
	@GOOS=linux GOARCH=$* $(GO_BUILD) -ldflags '-s -w $(BUILD_ID)' -o bin/krig-agent-linux-$* ./cmd/krig-agent

lint-tool:
	@$(LINT) version 2>/dev/null | grep -q 'version $(LINT_VERSION) ' || \
		GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VERSION)

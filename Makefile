# vllm-triage. `make` or `make help` lists the targets.

BIN      := bin/vllm-triage
TOOLS    := $(CURDIR)/bin/tools
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
MAX_MB   := 45
FUZZTIME ?= 60s
IMAGE    ?= vllm-triage:$(VERSION)

# Tools, pinned. They are compiled once into bin/tools, which git ignores.
GOLANGCI_VERSION    := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
CYCLONEDX_VERSION   := v1.10.0
HELM_VERSION        := v3.22.0

GOLANGCI    := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
CYCLONEDX   := $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX_VERSION)
HELM        := $(TOOLS)/helm-$(HELM_VERSION)

# The race detector needs a C compiler; a machine without one still runs the tests.
RACE := $(if $(shell command -v $$(go env CC) 2>/dev/null),-race)

.DEFAULT_GOAL := help
.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

##@ Every day

.PHONY: build
build: ## Build the static binary bin/vllm-triage, print its size and refuse one that grew too big.
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/vllm-triage
	@bytes=$$(wc -c < $(BIN)); \
	awk -v b="$$bytes" -v max=$(MAX_MB) 'BEGIN { mb = b / 1e6; printf "%s: %.1f MB (limit %d MB)\n", "$(BIN)", mb, max; exit mb > max }'

.PHONY: test
test: ## go vet and all tests, with the race detector.
	go vet ./...
	go test $(RACE) -timeout 30m ./...
ifneq ($(RACE),)
	@# The race detector makes SQLite ten times slower: storms are told shorter under it, so tell them in full without it.
	go test -timeout 10m ./cmd/vllm-triage/server
endif

.PHONY: lint
lint: $(GOLANGCI) $(GOVULNCHECK) ## golangci-lint (gosec among its linters), the format check, govulncheck where its database can be reached.
	$(GOLANGCI) config verify
	$(GOLANGCI) run ./...
	@# A second pass: `run` reports an unformatted file, `fmt --diff` shows what to change.
	$(GOLANGCI) fmt --diff ./...
	@out=$$(timeout 120 $(GOVULNCHECK) ./... 2>&1) && echo "$$out" || case "$$out" in \
	*"fetching vulnerabilities"*) echo "govulncheck: the Go vulnerability database cannot be reached from here: not checked";; \
	*) echo "$$out"; exit 1;; esac

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the code (gofumpt, goimports).
	$(GOLANGCI) fmt ./...

.PHONY: demo
demo: ## Play a recorded incident through the real service: message in the terminal and as a page.
	go run ./cmd/vllm-triage demo

##@ Longer tests

.PHONY: golden
golden: ## Rewrite every golden file; review the diff before you commit it.
	@for dir in $$(grep -rl --include='*_test.go' 'Bool("update"' . | xargs -n 1 dirname | sort -u); do \
	  echo "go test $$dir -update"; go test "$$dir" -update || exit 1; done

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (60s).
	@grep -rlE --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
	  dir=$$(dirname "$$file"); \
	  for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
	    echo "fuzz $$dir $$name for $(FUZZTIME)"; \
	    go test "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) </dev/null || exit 1; \
	  done; done

.PHONY: bench
bench: ## Run the benchmarks: BENCH=regexp chooses, BENCHTIME=1s.
	@grep -rlE --include='*_test.go' '^func Benchmark' . | xargs -n 1 dirname | sort -u | while read -r dir; do \
	  go test "$$dir" -run '^$$' -bench '$(or $(BENCH),.)' -benchtime $(or $(BENCHTIME),1s) -benchmem </dev/null || exit 1; done

.PHONY: flood
flood: ## Webhooks a second, each on the disk before its answer, p50, p99 and memory in a flood of FLOOD (60s), beside a bare Echo.
	go test ./cmd/vllm-triage/flood -run '^$$' -bench . -benchtime 1x -timeout 30m -args -flood $(or $(FLOOD),60s)

.PHONY: eval
eval: build ## Score the ranking over the recorded incidents and print the table.
	$(BIN) eval triage/testdata/incidents

.PHONY: robustness
robustness: build ## Transform the recorded incidents in many ways and print what becomes of the answers (minutes).
	VLLM_TRIAGE_ROBUSTNESS=1 go test -count=1 -timeout 30m ./triage/eval/robust
	$(BIN) eval --robustness triage/testdata/incidents

.PHONY: e2e
e2e: ## A real Prometheus and Alertmanager, the real binary, a simulated vLLM that turns bad, a fake Slack.
	go test -tags e2e -count=1 -v ./deploy/e2e

.PHONY: crash
crash: ## Kill the program at CRASHES (200) random instants under a storm, on SQLite and PostgreSQL; count what is lost.
	go test -tags crash -count=1 -timeout 60m -v ./cmd/vllm-triage/crash -args -crashes $(or $(CRASHES),200)

FLEET ?= 1,50,500,2000

.PHONY: bench-fleet
bench-fleet: ## Triage 1 to 2,000 generated replicas on a real Prometheus: queries, bytes, time, memory of both.
	FLEET=$(FLEET) go test -count=1 -timeout 60m -v ./triage/eval/fleet

.PHONY: rules
rules: $(HELM) ## Check Prometheus rules, Alertmanager configuration, dashboards, manifests and chart.
	go test -count=1 ./deploy/...

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities (needs the Go vulnerability database, vuln.go.dev).
	$(GOVULNCHECK) ./...

##@ Release

.PHONY: image
image: ## Build the container image (needs Docker).
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE) .

.PHONY: sbom
sbom: $(CYCLONEDX) ## Write the CycloneDX SBOM and the licence list to dist/.
	@mkdir -p dist
	CGO_ENABLED=0 $(CYCLONEDX) app -json -licenses -std -main cmd/vllm-triage -output dist/sbom.cdx.json .
	@go run ./deploy/licences dist/sbom.cdx.json > dist/licences.txt
	@echo "dist/sbom.cdx.json, dist/licences.txt"

.PHONY: lint-tools
lint-tools: $(GOLANGCI) $(GOVULNCHECK) ## Compile only what lint needs.

.PHONY: tools
tools: $(GOLANGCI) $(HELM) $(CYCLONEDX) $(GOVULNCHECK) ## Compile the pinned tools into bin/tools.

.PHONY: clean
clean: ## Remove what was built, the tools included.
	rm -rf bin dist coverage.out

# install,PACKAGE,VERSION: compile a tool under a name that carries its version, so that a new pin rebuilds it.
define install
	@mkdir -p $(TOOLS)/tmp
	GOFLAGS= GOBIN=$(TOOLS)/tmp go install $(1)@$(2)
	@mv $(TOOLS)/tmp/* $@ && rmdir $(TOOLS)/tmp
endef

$(GOLANGCI):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_VERSION))
$(GOVULNCHECK):
	$(call install,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))
$(CYCLONEDX):
	$(call install,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,$(CYCLONEDX_VERSION))
$(HELM):
	$(call install,helm.sh/helm/v3/cmd/helm,$(HELM_VERSION))

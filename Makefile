# lockchaos: the commands that people and CI use. `make` alone lists them.
SHELL := /bin/bash
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)

GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT := go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: help setup setup-sql adapters build run docker-image scenarios suite test test-all cluster-recordings ensemble-recordings test-redis-6 test-redis-8 test-valkey test-release mutants mutants-sample determinism disturbed verdicts install-check snapshot check deploy-check site site-check bench bench-shapes bench-ensembles bench-locks rivals-simulated clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install what is missing (Debian, Ubuntu), or print what it is
	@./scripts/setup

setup-sql: ## install PostgreSQL and MariaDB for scenarios pg-*, sql-* and mysql-* (Debian, Ubuntu), or print what is missing
	@./scripts/setup sql

build: bin/chaos ## build bin/chaos

bin/chaos: $(shell find . -name '*.go' -o -name '*.yaml' -o -name '*.lua' -o -name '*.tmpl' -o -name '*.css' -o -name '*.js' | grep -v -e '^./bin' -e '^./chaos-runs') $(wildcard adapters/*/*) go.mod go.sum
	go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/chaos

run: setup build ## lose a distributed lock in a failover, with proof and a picture
	./bin/chaos run --scenario failover --expect

docker-image: ## build lockchaos-redis:local from this machine's redis-server, for backend docker without a registry
	scripts/docker-image

scenarios: build ## run every scenario N times (default 5), JOBS at a time, and print the table of docs/reference/scenarios.md
	JOBS=$(or $(JOBS),1) scripts/repeat $(or $(N),5) $$(./bin/chaos list scenarios --all --json | sed -n 's/.*"name": "\(.*\)".*/\1/p')

suite: build ## run every scenario on simulated servers against its expected verdict (docs/how-to/suite.md)
	./bin/chaos suite --backend sim --seed 1

# Make check tests internal/style with the same flags, so that go test has its result.
# What go vet finds is left to make check, which runs it on all files.
QUICK := -short -vet=off -parallel 32 -timeout 30m

# The packages whose tests take longest are named before the others and start first: none runs alone at the end.
LONGEST := ./cmd/chaos ./internal/runner ./internal/testkit/locktest ./reports ./lock ./internal/cluster/process ./lock/zookeeper

# Most packages wait for servers: six at a time keep two cores busy.
test: setup ## the tests that a change needs, without the race detector; real servers are started by the tests
	go test -p 6 $(QUICK) $(LONGEST) ./...

# Long tests of code that runs in one goroutine, or whose goroutines other tests run with the race detector (internal/testkit/race).
LONG_TESTS := TestSweepAgreesWithPorcupine|TestDifferential|TestDifferentialProperties|TestBothFoldsFindTheSameHolds
LONG_TESTS := $(LONG_TESTS)|TestStreamOfRandom|TestRefusedReleases
LONG_TESTS := $(LONG_TESTS)|TestCheckJudgesTheTestdata|TestCausesOnProcess|TestSafeSentencesOnSim|TestMeasure|TestCover
LONG_TESTS := $(LONG_TESTS)|TestReplicaIsEqual|TestSameAsRedis|TestScenariosEndOnSimAsTheyExpect|TestSameSeedSameRun
LONG_TESTS := $(LONG_TESTS)|TestAccessibility|TestNarrowPageCutsNoMarker|TestScale|TestMarkersCoverNoLabel
LONG_TESTS := $(LONG_TESTS)|TestNarrowPageCoversNoLabel|TestScriptDrawsTheSamePicture|TestDiagramMoves|TestNightly|TestKubernetes|TestSlurm|TestJobsOfALock
LONG_TESTS := $(LONG_TESTS)|TestStoppedHarness|TestStoppedClient|TestScenarios|TestHazelcast|TestTutorials
LONG_PACKAGES := ./examples ./internal/runner ./internal/cluster/sim/engine ./checker ./reports ./deploy ./cmd/chaos ./internal/lab/mutants

# Packages without a goroutine of their own (internal/style checks it): make test runs all of their tests but the long ones.
SEQUENTIAL := ./deploy ./examples ./internal/lab/mutants ./internal/style ./reports ./scenarios
RACING = $(filter-out $(SEQUENTIAL:./%=github.com/lockchaos/lockchaos/%),$(shell go list ./...))

test-all: setup ## what make test leaves out: the race detector, whole catalogs, long random sequences
	go test -vet=off -race -p 4 -parallel 8 -timeout 30m $(filter-out $(SEQUENTIAL),$(LONGEST)) $(RACING)
	go test -vet=off -p 4 -parallel 8 -timeout 30m -run '^($(LONG_TESTS))$$' $(LONG_PACKAGES)

test-redis-6: ## the conformance tests of package lock on Redis 6.2, without a cluster
	PATH="$$(scripts/redis-6.2 bin/redis-6.2):$$PATH" go test -timeout 20m ./internal/testkit/locktest -run 'TestKinds/.*-(single|sentinel|quorum)$$'

test-redis-8: ## the conformance tests of package lock on the Redis 8.0 of Debian 13, on one server
	PATH="$$(scripts/redis-debian redis-server bin/redis-8):$$PATH" go test -timeout 20m ./internal/testkit/locktest -run 'TestKinds/.*-single$$'

test-valkey: ## the same on the Valkey 8.1 of Debian 13
	PATH="$$(scripts/redis-debian valkey-server bin/valkey):$$PATH" go test -timeout 20m ./internal/testkit/locktest -run 'TestKinds/.*-single$$'

test-release: setup ## build the image and an archive of a release, and try them (compiles everything twice; every night)
	scripts/with-docker go test -count=1 -timeout 30m ./deploy -v -release

cluster-recordings: setup ## record 20 real Redis Clusters and compare them with the simulated bus, times too (three minutes)
	go test -count=1 -timeout 30m ./internal/cluster/sim -run 'Bus|RealCluster' -v -recordings 20 -recordings.seeds 60

ensemble-recordings: setup ## record ten real ZooKeeper ensembles (ten minutes)
	go test -count=1 -timeout 40m ./internal/cluster/sim -run 'TheSimulatedEnsemble|RealEnsemble' -v -recordings 10 -recordings.seeds 60

install-check: ## install the last commit as `go install …/cmd/chaos@VERSION` does, from a module zip into an empty module cache
	scripts/check-install

snapshot: ## build the archives of a release in dist/: Linux, and macOS with simulated servers only; checksums, SBOM
	scripts/snapshot

mutants: setup ## plant every bug of internal/lab/mutants in package lock and write docs/contributors/detection.md (hours; JOBS at a time, continues)
	go run ./internal/lab/mutants/run -jobs $(or $(JOBS),1)

mutants-sample: setup ## check planted bugs, drawn by the commit: up to a tenth of them (about a minute)
	go run ./internal/lab/mutants/run -draw "$$(git rev-parse HEAD)" -budget 4s -total 40s

adapters: build ## build the clients for other lock libraries for which this machine has the toolchain; test-all runs them
	bin/chaos adapters build

verdicts: adapters ## test each lock of the adapters for two minutes and write docs/contributors/verdicts.md (82 minutes, continues)
	go run ./internal/lab/libraries/run
	go run ./internal/lab/libraries/run -pictures

disturbed: build ## 40 safe scenarios beside busy loops, and with the harness, a server or a client stopped by hand: none is unsafe (an hour)
	go run ./internal/lab/disturbed/run -draw $(or $(DRAW),1) -jobs $(or $(JOBS),1)

determinism: setup ## compare repeated simulations byte by byte: all scenarios, 1, 2 and 8 processors, race or not, busy or idle (hours)
	@for race in '' -race; do for busy in 0 3; do for variation in 0 1; do \
	  go test $$race -timeout 0 ./internal/runner -run 'TestSameSeedSameRun$$' -v -same.only all -same.procs 1,2,8 \
	    -same.runs 20 -same.spin none -same.busy $$busy -same.variation $$variation || exit 1; \
	done; done; done

check: setup ## formatting, golangci-lint, actionlint, go.mod, house rules, `go install` (the first run builds the linter: about two minutes)
	go mod tidy -diff
	$(GOLANGCI) run ./...
	$(ACTIONLINT) .github/workflows/*.yml examples/ci/github.yml
	go test $(QUICK) ./internal/style/...
	scripts/check-install -n

deploy-check: ## validate deploy/kubernetes against the published schemas (kustomize, kubeconform)
	scripts/check-kubernetes

site: build ## build the site into dist/site, searchable also as files, and check its links (needs Python 3.11)
	scripts/site

site-check: ## open pages of the built site in a browser: axe-core, search, requests to elsewhere
	go test -count=1 -timeout 10m ./internal/site -run BuiltSite -site '$(CURDIR)/dist/site'

bench-shapes: ## judges histories of up to a million events of every shape: processor time, and how it grows
	go test ./checker -run '^$$' -bench Traffic -benchtime 1x -timeout 60m

bench: setup ## the benchmarks whose numbers are in the docs
	go test -run '^$$' -bench . -benchmem ./...

rivals-simulated: ## redsync, bsm/redislock and client-go explored on simulated servers (ten minutes)
	cd bench/simulated && GOFLAGS=-mod=mod go test . -timeout 60m -v -seeds 150

bench-ensembles: build ## locks on ZooKeeper and etcd compared with go-zookeeper's, Curator's and etcd's own: pairs per second, N rounds (5)
	-bin/chaos adapters build curator
	scripts/ensemble-rates $(or $(N),5)
	go test ./lock/etcd ./lock/zookeeper -p 1 -run xxx -bench Alternate -benchtime 60x

bench-locks: ## package lock compared with redsync, bsm/redislock and rueidislock
	cd bench && go run .

clean: ## remove what was built, and whatever an interrupted run left behind
	@test ! -x bin/chaos || ./bin/chaos clean
	rm -rf bin

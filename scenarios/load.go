package scenarios

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

//go:embed *.yaml
var files embed.FS

// Names are the names of the named scenarios, in the order of `chaos list scenarios`.
func Names() []string {
	return []string{
		"failover", "failover-wait-1", "failover-wait-all", "failover-wait-refused", "failover-wait-only-replica",
		"failover-delayed", "sentinel-quorum-1", "sentinel-minority", "wait-starved", "wait-starved-program",
		"wait-starved-short-holds", "wait-starved-mixed", "endpoint-change", "endpoint-change-stale",
		"endpoint-change-stale-wait", "manual-promotion", "manual-promotion-other", "master-restart-empty",
		"split-brain", "min-replicas", "no-min-replicas",
		"skewed-replica", "token-failover", "cluster-failover", "cluster-lost-write", "cluster-node-paused",
		"cluster-down", "slot-migration", "mixed-migration", "mixed-migration-replies", "mixed-migration-leases",
		"migration-joined-late", "migration-release-replies", "migration-renewals", "migration-grant-replies",
		"migration-replicas", "migration-first-use", "migration-forced-permits", "migration-handover", "gc-pause",
		"gc-pause-replies", "fenced-pause", "partitioned-holder", "renewed-holder-cut-off", "overstayed-lease",
		"plain-del", "compare-and-delete", "clock-jump", "clock-jump-back", "clock-step-back", "clock-drift",
		"client-clocks", "power-loss-single", "everysec-slow-disk", "slow-disk", "expiry-while-down", "key-deleted",
		"flushall", "eviction", "foreign-data", "memory-full", "snapshots-failing", "busy-script",
		"busy-after-release", "connection-limit", "reply-lost-acquire", "resent-acquire", "duplicated-release",
		"reply-lost-uncontended", "fair-permits-reply-lost", "grants-expired-unseen", "reply-lost-release",
		"silent-connections", "silent-connections-busy", "silent-holder", "lost-wake-up", "message-lost",
		"message-trusted", "thundering-herd", "fair-herd", "fair-short-leases", "fair-dead-waiter", "fair-dead-first",
		"fair-dead-queue", "fair-handed-to-dead", "fair-unused-grant", "fair-short-grants", "fair-migration-deaths",
		"fair-queue-deleted", "fair-foreign-waiter", "fair-permits-foreign-waiter", "fair-poll-differs",
		"writer-preference-deaths", "writer-preference-dead-writer", "writer-preference-slow-network",
		"fair-paused-waiters", "woken-waiters", "crowded-process", "burst-of-requests", "server-down", "idle-program",
		"waiters", "waiters-mutex", "waiters-one-program", "waiters-three", "waiters-short-holds",
		"waiters-slow-network", "waiters-subscriptions-cut", "waiters-subscriptions-flap",
		"waiters-subscriptions-refused", "waiters-server-restarts", "waiters-channel-refused",
		"channel-refused-slow-network", "waiters-redlock", "waiters-fair", "waiters-fair-four", "waiters-fair-deaths",
		"waiters-fair-counted", "waiters-cluster", "waiters-slot-moved", "waiters-released-in-migration",
		"replicas-slot-moved", "waiters-latch", "waiters-readers-writer", "waiters-writer-preference",
		"waiters-permits", "waiters-permits-one-program", "waiters-fair-permits", "waiters-lost-messages",
		"waiters-semaphore-lost-messages", "waiters-queue-lost-messages", "waiters-multi", "waiters-multi-cluster",
		"waiters-multi-kinds", "waiters-multi-permits", "short-waits", "late-replies", "renewals-lost", "contention",
		"narrow-network", "script-flush", "rights-revoked", "subscribe-refused", "read-only-demotion",
		"watchdog-dead-client", "client-restart", "client-restart-reentrant", "stuck-holder", "stuck-holder-limited",
		"stuck-holder-unrenewed", "renewed-together", "setnx-crash", "expire-lost", "setnx-del-unchecked",
		"setnx-getset-unchecked", "release-unwatched", "release-of-lost-lock", "redlock-contention",
		"redlock-split-vote", "redlock-jitter", "redlock-two-masters-down", "redlock-restart-empty",
		"redlock-restart-delayed", "redlock-restart-early", "redlock-rolling-restart",
		"redlock-rolling-restart-leased", "redlock-everysec", "redlock-always", "redlock-slow-disk",
		"redlock-slow-disks", "redlock-kill-everysec", "redlock-clock-jump", "redlock-clock-back",
		"redlock-minority-down", "redlock-slow-majority", "redlock-replies-late", "redlock-no-validity",
		"redlock-reply-lost", "redlock-missed-releases", "redlock-reentry-silent", "redlock-missed-again",
		"redlock-claims-left", "redlock-releases-unanswered", "redlock-slow-minority", "redlock-renewal-unanswered",
		"redlock-short-leases", "redlock-scripts-refused", "redlock-partitioned-holder", "redlock-reopened",
		"redlock-renewals", "redlock-fenced-pause", "semaphore-failover", "permits-dead-client",
		"readers-writer-pause", "mixed", "mixed-mutex", "mixed-non-reentrant", "mixed-spin", "mixed-fenced",
		"mixed-fair", "mixed-fair-once", "mixed-readers-writer", "mixed-readers-writer-once",
		"mixed-writer-preference", "readers-await-write", "mixed-nested-reads", "mixed-multi", "mixed-multi-once",
		"mixed-multi-once-replies", "mixed-multi-cluster", "mixed-multi-kinds", "mixed-multi-permits", "mixed-permits",
		"mixed-fair-permits", "mixed-semaphore", "mixed-shop", "mixed-libraries", "multi-part-deleted",
		"multi-cluster-part-deleted", "multi-cluster-part-released", "multi-backs-off", "multi-backs-off-permits",
		"multi-backs-off-cluster", "multi-cut-short", "multi-hangs-briefly", "multi-slow-grants",
		"renewals-unanswered", "reopened", "closed-polls", "closed-acquires", "mixed-network", "mixed-replies",
		"mixed-replies-lost", "mixed-once-replies", "mixed-resent", "permits-resent", "mixed-releases",
		"mixed-reentries", "mixed-outages", "mixed-short-timeouts", "guarded-packets-lost", "mixed-fast-clock",
		"mixed-slow-holders", "mixed-tagged", "tries-unanswered", "late-requests", "late-requests-one-key",
		"late-requests-long-leases", "releases-given-up", "forced-releases-unanswered", "slow-grants", "slow-network",
		"short-faults", "mixed-one-program", "mixed-several-kinds", "mixed-calls", "mixed-calls-fair", "short-turns",
		"mixed-calls-migration", "mixed-redlock", "mixed-redlock-network", "mixed-redlock-minority",
		"mixed-redlock-outages", "mixed-redlock-forced", "mixed-redlock-halves", "mixed-redlock-emptied", "latch",
		"latch-clock-back", "latch-packets-lost", "latch-replies-lost", "latch-resent", "migration-latch-resent",
		"migration-readers-resent", "swarm-single", "swarm", "swarm-mixed", "swarm-mixed-redlock", "zk-failover",
		"zk-rolling-restart", "zk-partitioned-holder", "zk-leader-paused", "zk-leader-cut-off", "zk-clock-jump",
		"zk-one-disk-lost", "zk-power-loss", "zk-reply-lost-acquire", "zk-reply-lost-release", "zk-herd",
		"zk-loss-unreported", "zk-gc-pause", "zk-node-deleted", "zk-fenced-pause", "zk-disks-lost",
		"zk-power-loss-unsynced", "zk-readers-writer", "zk-semaphore", "zk-multi", "etcd-failover",
		"etcd-leader-paused", "etcd-partitioned-holder", "etcd-reply-lost-acquire", "etcd-reply-lost-release",
		"etcd-power-loss", "etcd-node-deleted", "etcd-gc-pause", "etcd-power-loss-unsynced", "etcd-readers-writer",
		"etcd-semaphore", "etcd-multi",
	}
}

// Catalog is every named scenario.
func Catalog() ([]Scenario, error) {
	var list []Scenario
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// Load reads the scenario of that name, or from a file: a name with a path separator, or that ends in .yaml or .yml,
// is a file. Overrides are applied before the scenario is checked. Errors show line and column, or name the override.
func Load(name string, overrides ...Override) (Scenario, error) {
	source, err := read(name)
	if err != nil {
		return Scenario{}, err
	}
	s, err := Parse(source, overrides...)
	if err != nil && isFile(name) {
		err = inFile(err, name)
	}
	return s, err
}

// inFile names the file in errors about its text.
func inFile(err error, name string) error {
	all := slices.Clone(split(err))
	for i, one := range all {
		if m, ok := errors.AsType[*mistake](one); ok {
			m.file = name
		} else if rest, ok := strings.CutPrefix(one.Error(), "scenario: "); ok {
			all[i] = fmt.Errorf("%s: %s", name, rest)
		}
	}
	return errors.Join(all...)
}

func read(name string) ([]byte, error) {
	if isFile(name) {
		source, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the scenario: %w", err)
		}
		return source, nil
	}
	source, err := files.ReadFile(name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("unknown scenario %q%s", name,
			nearest.Or(name, Names(), " (see chaos list scenarios; write ./FILE.yaml for a file of your own)"))
	}
	return source, err
}

// readFile reads a regular file or a pipe, and no more of it than a scenario may have: /dev/zero has no end.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name) // before opening it: to open a device may block, or act on it
	if err != nil {
		return nil, err
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s is neither a regular file nor a pipe", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(source) > maxText {
		err = fmt.Errorf("%s has more than %d bytes, the limit", name, maxText)
	}
	return source, err
}

func isFile(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) ||
		strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Parse reads a scenario from YAML and checks it. See [Load].
func Parse(source []byte, overrides ...Override) (s Scenario, err error) {
	defer func() {
		if p := recover(); p != nil { // the YAML library panics on some texts that fuzzing has found
			s, err = Scenario{}, fmt.Errorf("scenario: the text is not YAML: %v", p)
		}
	}()
	if len(overrides) == 0 {
		s, _, err = decode(source)
		return s, err
	}
	changed, err := override(source, overrides)
	if err != nil {
		return Scenario{}, err
	}
	s, file, err := decode(changed)
	if err != nil {
		return Scenario{}, attribute(err, file, source, overrides)
	}
	return s, nil
}

// decode reads and checks a text; file is nil if it is not YAML.
func decode(source []byte) (s Scenario, file *ast.File, err error) {
	file, err = inspect(source)
	if err != nil {
		return Scenario{}, nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return Scenario{}, nil, errors.New("scenario: the text is empty")
	}
	n := numberCheck{fields: fields()}
	if ast.Walk(&n, file.Docs[0].Body); n.err != nil {
		return Scenario{}, file, n.err
	}
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&s); err != nil {
		return Scenario{}, file, syntaxError(err)
	}
	if err := check(s, file); err != nil {
		return Scenario{}, file, err
	}
	return s, file, nil
}

// YAML is the scenario as a text for [Parse].
func (s Scenario) YAML() string {
	// A literal block is readable, but the library writes some texts so that they are read back differently, such as
	// one that begins with a space.
	text, err := yaml.MarshalWithOptions(s, yaml.UseLiteralStyleIfMultiline(true))
	var copied Scenario
	if err == nil && (yaml.Unmarshal(text, &copied) != nil || !reflect.DeepEqual(s, copied)) {
		text, err = yaml.Marshal(s)
	}
	if err != nil {
		return "# " + err.Error()
	}
	return string(text)
}

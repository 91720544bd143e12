package cluster

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// OptionType is the type of the value of a redis.conf directive.
type OptionType string

// Types of values.
const (
	optionBool    OptionType = "yes or no"
	optionInteger OptionType = "integer"
	optionMemory  OptionType = "memory"
	optionWord    OptionType = "word"
	optionText    OptionType = "text" // only the server checks it
)

// Option is a redis.conf directive that a topology may set.
type Option struct {
	Name     string
	Type     OptionType
	Min, Max int64    // of an integer
	Words    []string // of a word
}

// ErrUnknownOption: the directive is not in the catalog.
var ErrUnknownOption = errors.New("unknown option")

// reserved are the directives that addresses and clean-up depend on.
func reserved() []string {
	return []string{"aclfile", "bind", "bind-source-addr", "cluster-announce-bus-port", "cluster-announce-ip",
		"cluster-announce-port", "cluster-config-file", "cluster-enabled", "cluster-port", "daemonize", "dir", "include",
		"loadmodule", "logfile", "masterauth", "masteruser", "pidfile", "port", "protected-mode", "replica-announce-ip",
		"replica-announce-port", "replicaof", "requirepass", "slave-announce-ip", "slave-announce-port", "slaveof",
		"supervised", "syslog-enabled", "unixsocket", "user"}
}

// checkDirective refuses all but one redis.conf directive, and directives reserved for the harness.
func checkDirective(name, value string) error {
	if slices.Contains(reserved(), strings.ToLower(name)) {
		return fmt.Errorf("option %q of the topology is reserved for the harness: leave it out", name)
	}
	if name == "" || strings.ContainsAny(name, " \t\r\n\"'#") || strings.ContainsAny(value, "\r\n") {
		return fmt.Errorf("option %q with value %q of the topology is not one redis.conf directive", name, value)
	}
	return nil
}

// CheckOption refuses directives that redis-server would refuse: unknown ones (ErrUnknownOption), and values of another
// type or out of bounds.
func CheckOption(name, value string) error {
	if err := checkDirective(name, value); err != nil {
		return err
	}
	for _, o := range options() {
		if o.Name == currentName(name) {
			return o.check(name, strings.Trim(value, `"'`))
		}
	}
	return fmt.Errorf("%w %q of the topology", ErrUnknownOption, name)
}

// currentName is the name of a directive since Redis 7: older names are still accepted.
func currentName(name string) string {
	name = strings.ToLower(name)
	if name == "lua-time-limit" {
		return "busy-reply-threshold"
	}
	return strings.NewReplacer("slave", "replica", "ziplist", "listpack").Replace(name)
}

// memorySize matches a number of bytes as redis-server reads it.
var memorySize = regexp.MustCompile(`^(?i)[0-9]+(b|k|kb|m|mb|g|gb)?$`)

func (o Option) check(name, value string) error {
	switch o.Type {
	case optionBool:
		if !slices.Contains([]string{"yes", "no"}, strings.ToLower(value)) {
			return fmt.Errorf("option %s is yes or no, not %q", name, value)
		}
	case optionWord:
		if !slices.Contains(o.Words, strings.ToLower(value)) {
			return fmt.Errorf("option %s is one of %s, not %q", name, strings.Join(o.Words, ", "), value)
		}
	case optionMemory:
		if !memorySize.MatchString(value) {
			return fmt.Errorf("option %s is a number of bytes, such as 100mb, not %q", name, value)
		}
	case optionInteger:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < o.Min || n > o.Max {
			return fmt.Errorf("option %s is an integer %s, not %q", name, o.bounds(), value)
		}
	}
	return nil
}

func (o Option) bounds() string {
	if o.Max >= math.MaxInt32 {
		return fmt.Sprintf("from %d", o.Min)
	}
	return fmt.Sprintf("from %d to %d", o.Min, o.Max)
}

// options is the catalog of directives, of redis-server 6.2 to 8, under their current names.
func options() []Option {
	list := slices.Concat(integers(), words())
	for _, name := range strings.Fields(bools) {
		list = append(list, Option{Name: name, Type: optionBool})
	}
	for _, name := range strings.Fields(memories) {
		list = append(list, Option{Name: name, Type: optionMemory})
	}
	for _, name := range strings.Fields(texts) {
		list = append(list, Option{Name: name, Type: optionText})
	}
	return list
}

const (
	bools = `activedefrag activerehashing always-show-logo aof-disable-auto-gc aof-load-truncated
		aof-rewrite-incremental-fsync aof-timestamp-enabled aof-use-rdb-preamble appendonly
		cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down cluster-allow-replica-migration
		cluster-replica-no-failover cluster-require-full-coverage cluster-slot-stats-enabled crash-log-enabled
		crash-memcheck-enabled disable-thp dynamic-hz gopher-enabled hide-user-data-from-log io-threads-do-reads
		jemalloc-bg-thread latency-tracking lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del
		lazyfree-lazy-user-del lazyfree-lazy-user-flush lazyexpire-nested-arbitrary-keys no-appendfsync-on-rewrite
		rdb-del-sync-files rdb-save-incremental-fsync rdbchecksum rdbcompression repl-disable-tcp-nodelay
		repl-diskless-sync repl-rdb-channel replica-announced replica-ignore-disk-write-errors replica-ignore-maxmemory
		replica-lazy-flush replica-read-only replica-serve-stale-data set-proc-title stop-writes-on-bgsave-error
		tls-cluster tls-prefer-server-ciphers tls-replication tls-session-caching`
	memories = `active-defrag-ignore-bytes auto-aof-rewrite-min-size client-query-buffer-limit cluster-link-sendbuf-limit
		hash-max-listpack-value hll-sparse-max-bytes maxmemory proto-max-bulk-len repl-backlog-size
		replica-full-sync-buffer-limit set-max-listpack-value stream-node-max-bytes zset-max-listpack-value`
	texts = `aclfile aof_rewrite_cpulist appenddirname appendfilename bgsave_cpulist bio_cpulist
		client-output-buffer-limit cluster-announce-hostname cluster-announce-human-nodename cluster-announce-tls-port
		dbfilename ignore-warnings latency-tracking-info-percentiles locale-collate masterauth masteruser
		maxmemory-clients notify-keyspace-events oom-score-adj-values proc-title-template rename-command save server_cpulist
		syslog-ident tls-auth-clients tls-ca-cert-dir tls-ca-cert-file tls-cert-file tls-ciphers tls-ciphersuites
		tls-client-cert-file tls-client-key-file tls-client-key-file-pass tls-dh-params-file tls-key-file
		tls-key-file-pass tls-port tls-protocols tls-session-cache-size tls-session-cache-timeout unixsocketperm user`
)

func words() []Option {
	list := func(name string, words ...string) Option { return Option{Name: name, Type: optionWord, Words: words} }
	protected := []string{"no", "yes", "local"}
	shutdown := []string{"default", "save", "nosave", "now", "force", "safe", "failover"}
	return []Option{
		list("appendfsync", "always", "everysec", "no"),
		list("maxmemory-policy", "noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-lrm", "allkeys-random",
			"volatile-lru", "volatile-lfu", "volatile-lrm", "volatile-random", "volatile-ttl"),
		list("loglevel", "debug", "verbose", "notice", "warning", "nothing"),
		list("repl-diskless-load", "disabled", "on-empty-db", "swapdb", "flush-before-load", "always"),
		list("sanitize-dump-payload", "no", "yes", "clients"),
		list("enable-debug-command", protected...), list("enable-module-command", protected...),
		list("enable-protected-configs", protected...),
		list("shutdown-on-sigint", shutdown...), list("shutdown-on-sigterm", shutdown...),
		list("propagation-error-behavior", "ignore", "panic", "panic-on-replicas"),
		list("acl-pubsub-default", "allchannels", "resetchannels"),
		list("cluster-preferred-endpoint-type", "ip", "hostname", "unknown-endpoint"),
		list("oom-score-adj", "no", "yes", "relative", "absolute"),
		list("syslog-facility", "user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"),
	}
}

func integers() []Option {
	list := func(low, high int64, names ...string) (all []Option) {
		for _, name := range names {
			all = append(all, Option{Name: name, Type: optionInteger, Min: low, Max: high})
		}
		return all
	}
	return slices.Concat(
		list(0, math.MaxInt32, "auto-aof-rewrite-percentage", "cluster-migration-barrier", "hz", "lfu-decay-time",
			"lfu-log-factor", "list-compress-depth", "min-replicas-max-lag", "min-replicas-to-write",
			"repl-diskless-sync-delay", "repl-diskless-sync-max-replicas", "replica-priority", "cluster-replica-validity-factor",
			"shutdown-timeout", "tcp-backlog", "tcp-keepalive", "timeout"),
		list(0, math.MaxInt64, "acllog-max-len", "busy-reply-threshold", "cluster-node-timeout",
			"hash-max-listpack-entries", "latency-monitor-threshold", "repl-backlog-ttl", "set-max-intset-entries",
			"set-max-listpack-entries", "slowlog-max-len", "socket-mark-id", "stream-node-max-entries",
			"tracking-table-max-keys", "zset-max-listpack-entries"),
		list(1, math.MaxInt32, "databases", "maxmemory-samples", "repl-ping-replica-period", "repl-timeout"),
		list(1, math.MaxInt64, "active-defrag-max-scan-fields"),
		list(1, math.MaxUint32, "maxclients"),
		list(1, 1000, "max-new-connections-per-cycle", "max-new-tls-connections-per-cycle"),
		list(1, 10, "active-expire-effort"),
		list(1, 99, "active-defrag-cycle-min", "active-defrag-cycle-max"),
		list(0, 1000, "active-defrag-threshold-lower", "active-defrag-threshold-upper"),
		list(0, 100, "maxmemory-eviction-tenacity"),
		list(1, 128, "io-threads"),
		list(math.MinInt32, math.MaxInt32, "list-max-listpack-size"),
		list(-1, math.MaxInt64, "slowlog-log-slower-than"),
	)
}

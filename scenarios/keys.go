package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/workloads"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Key is a key of a scenario.
type Key struct {
	Path    string   `json:"path"` // such as faults[].random.every
	Type    string   `json:"type"` // text, number, yes or no, duration, list, section
	Default string   `json:"default,omitempty"`
	Doc     string   `json:"doc"`
	Values  []string `json:"values,omitempty"` // the allowed ones; empty: any

	required bool
}

// Few reports whether a text can list the values that are allowed.
func (k Key) Few() bool { return len(k.Values) > 0 && len(k.Values) < 12 }

// The types of keys.
const (
	typeText     = "text"
	typeNumber   = "number"
	typeBool     = "true or false"
	typeDuration = "duration"
	typeList     = "list"
	typeSection  = "section"
)

// Keys are all keys of a scenario, section by section.
func Keys() []Key { return keysUnder("", reflect.TypeFor[Scenario]()) }

func requiredKeys() []string {
	return []string{"summary", "topology", "lock", "duration", "topology.kind", "expect.verdict"}
}

// keysUnder are the keys of a section, then its sections' keys; prefix is "" or ends with a dot.
func keysUnder(prefix string, t reflect.Type) []Key {
	var own, inner []Key
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" {
			continue
		}
		k := Key{Path: prefix + name}
		if i := slices.IndexFunc(keyDocs(), func(d Key) bool { return d.Path == k.Path }); i >= 0 {
			k = keyDocs()[i]
		}
		k.Type = typeName(f.Type)
		k.required = slices.Contains(requiredKeys(), k.Path)
		own = append(own, k)
		section, suffix := f.Type, "."
		if section.Kind() == reflect.Slice {
			suffix = "[]."
		}
		if section.Kind() == reflect.Slice || section.Kind() == reflect.Pointer {
			section = section.Elem()
		}
		if section.Kind() == reflect.Struct {
			inner = append(inner, keysUnder(k.Path+suffix, section)...)
		}
	}
	return append(own, inner...)
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return typeDuration
	case t.Kind() == reflect.Slice:
		return typeList
	case t.Kind() == reflect.Bool:
		return typeBool
	case t.Kind() == reflect.Int:
		return typeNumber
	case t.Kind() == reflect.String:
		return typeText
	}
	return typeSection
}

// keyDocs are the facts that reflection does not know. A test compares them with the types.
func keyDocs() []Key {
	return slices.Concat(topKeys(), topologyKeys(), workloadKeys(), faultKeys(), randomKeys())
}

func topKeys() []Key {
	return []Key{
		{Path: "name", Default: "that of the file",
			Doc: "name of the scenario and of its run directories: letters, digits, dots and dashes"},
		{Path: "summary", Doc: "what happens, in one sentence"},
		{Path: "production", Doc: "what it means in production, in one line"},
		{Path: "source", Doc: "where the tested claim was made"},
		{Path: "about", Doc: "a paragraph for the reader: what goes wrong, and why"},
		{Path: "topology", Doc: "the servers"},
		{Path: "lock", Doc: "the lock under test: a name of `chaos list locks`, or `exec:COMMAND` for your own client"},
		{Path: "options", Doc: "options of the lock, by name, such as `replicas: all`"},
		{Path: "locks", Doc: "other locks, which the last clients use on the same keys"},
		{Path: "locks[].lock", Doc: "the lock of these clients: a name, as in `lock`"},
		{Path: "locks[].options", Doc: "options of this lock"},
		{Path: "locks[].clients", Doc: "how many clients use it; at least one uses `lock`"},
		{Path: "workload", Doc: "what the clients do"},
		{Path: "faults", Doc: "what breaks, in order; a step with `when` waits until all steps before it were injected"},
		{Path: "keep", Default: "0",
			Doc: "servers that must stay in service: a fault that would leave fewer is not injected"},
		{Path: "duration", Doc: "how long clients start new operations"},
		{Path: "init_timeout", Default: InitTimeout.String(), Doc: "how long to wait for a client's reply to `init`"},
		{Path: "expect",
			Doc: "expected verdict and its class: `safe`, `inconclusive`, `unsafe`, `unsafe, broken promise` or `unsafe, " +
				"outlived lease`; a section if a property ends otherwise than they imply"},
		{Path: "expect.verdict", Doc: "the verdict and its class, as in `expect`"},
		{Path: "expect.except", Doc: "properties with another outcome than the derived one, each with `outcome` (`holds`, " +
			"`violated`, `undecided`, `not-applicable`, or several separated by ` or `) and `because`, the reason"},
		{Path: "thresholds", Doc: "limits for measured numbers, such as `acquire.p99 < 2s`"},
		{Path: "twin",
			Doc: "what would have prevented the violation: a run that is expected to be safe under the same faults"},
		{Path: "twin.scenario", Doc: "another scenario of the catalog", Default: "this one"},
		{Path: "twin.set", Doc: "overrides, as for `--set`"},
	}
}

func topologyKeys() []Key {
	return []Key{
		{Path: "topology.kind", Doc: "how the servers are arranged", Values: topologies()},
		{Path: "topology.masters", Default: "5 (quorum), 3 (cluster)", Doc: "number of masters"},
		{Path: "topology.members", Default: "3 (zookeeper, etcd)", Doc: "number of members of an ensemble: 3 or 5"},
		{Path: "topology.replicas", Default: "2 (replicated, sentinel), 1 (cluster)",
			Doc: "replicas of each master; of the primary of PostgreSQL none, or one standby"},
		{Path: "topology.sentinels", Default: "3", Doc: "number of Sentinels (sentinel)"},
		{Path: "topology.sentinel_quorum", Default: "a majority",
			Doc: "how many Sentinels must agree that the master is down (the quorum of SENTINEL MONITOR)"},
		{Path: "topology.down_after", Default: cluster.DefaultDownAfter.String(),
			Doc: "how long a master must be silent before Sentinels replace it (down-after-milliseconds)"},
		{Path: "topology.options",
			Doc: "settings of the data servers: directives of redis.conf, such as `appendfsync: always`, keys of zoo.cfg, " +
				"flags of etcd, or settings of PostgreSQL or MySQL"},
		{Path: "topology.nodes", Default: "1 (command)", Doc: "number of servers that `run` starts"},
		{Path: "topology.clock", Doc: "how to learn the time of a server of your own, for faults of clocks (command)"},
		{Path: "topology.clock.command", Doc: "a program that prints the time of the server in seconds since 1970, such as " +
			"`1795937400.25`"},
		{Path: "topology.addrs", Doc: "`HOST:PORT` of servers that run already (command), instead of `run`; `chaos run " +
			"--target tcp://HOST:PORT` sets it (docs/how-to/target.md)"},
		{Path: "topology.run", Doc: "command line of one server of your own, which stays in the foreground (command), with " +
			"placeholders such as `{host}` and `{port.client}` (docs/how-to/servers.md)"},
		{Path: "topology.env", Doc: "environment variables of each server of your own, by name, with placeholders"},
		{Path: "topology.ready", Default: "tcp: client",
			Doc: "when a server of your own serves clients: one of the following"},
		{Path: "topology.ready.tcp", Doc: "it accepts connections at the port of this name"},
		{Path: "topology.ready.http", Doc: "a GET of this URL is answered with a status from 200 to 299"},
		{Path: "topology.ready.command", Doc: "this program exits with 0"},
		{Path: "topology.ready.log", Doc: "its output contains this text"},
		{Path: "topology.role", Doc: "how to learn the role of a server of your own, for targets such as `master`"},
		{Path: "topology.role.command", Doc: "a program that prints `leader` or `follower`"},
		{Path: "topology.sample", Doc: "how to learn who holds which lock at a server of your own; without it the report " +
			"cannot show what servers stored"},
		{Path: "topology.sample.command", Doc: "a program that gets the names of locks as further arguments, and prints " +
			"those that are held as JSON, such as `{\"orders\": {\"owner\": \"a\", \"ttl_ms\": 1500}}`; further fields: " +
			"`owners`, `count`, `permits`, `token`"},
	}
}

func workloadKeys() []Key {
	names := format.Texts(workloads.Catalog(), func(r workload.Spec) string { return r.Name })
	p := workload.Params{}.Defaults()
	return []Key{
		{Path: "workload.kind", Default: p.Kind,
			Doc: "what each client repeats, see `chaos list workloads`", Values: names},
		{Path: "workload.clients", Default: fmt.Sprint(p.Clients), Doc: "number of clients"},
		{Path: "workload.keys", Default: fmt.Sprint(p.Keys), Doc: "number of locks"},
		{Path: "workload.hold", Default: p.Hold.String(), Doc: "length of a critical section"},
		{Path: "workload.jitter", Default: "0s", Doc: "random time, up to this, added to each hold and think"},
		{Path: "workload.think", Default: "0s", Doc: "pause after a release"},
		{Path: "workload.term", Default: "0s",
			Doc: "how long a leader leads before it resigns; 0: to the end of the run (leader)"},
		{Path: "workload.lease", Default: "0s", Doc: "requested lease; 0: the lock renews its lease itself"},
		{Path: "workload.wait", Default: p.Wait.String(), Doc: "how long an acquire waits"},
		{Path: "workload.ramp", Default: "0s", Doc: "time over which the clients start"},
		{Path: "workload.fenced", Default: "false",
			Doc: "the guarded resource rejects tokens older than the newest it has seen"},
		{Path: "workload.permits", Default: "3", Doc: "permits of each key (semaphore, mixed, waiters)"},
		{Path: "workload.writers", Default: "0",
			Doc: "number of clients that only write, while all others only read; 0: each does both (readers-writer)"},
		{Path: "workload.per_process", Default: "1",
			Doc: "clients per process; faults that pause or crash a client need 1"},
		{Path: "workload.per_instance", Default: "1",
			Doc: "clients that share one lock object, as the threads of a program do; divides `per_process`"},
		{Path: "workload.tagged", Default: "false",
			Doc: "the name of every key ends with the same hash tag, so all are in one slot of a Redis Cluster"},
		{Path: "workload.sequences", Default: "all that the lock can do",
			Doc: "names of sequences of operations, separated by commas, or `all but` and names (mixed); lists separated by " +
				"semicolons are for the clients in turn; `meeting` (latch); a lock has to support one of them; see " +
				"docs/reference/scenarios.md"},
		{Path: "workload.set_up", Default: "false", Doc: "give semaphores their size before anything else (mixed)"},
	}
}

func faultKeys() []Key {
	names := format.Texts(faults.Catalog(), func(r faults.Spec) string { return r.Name })
	return []Key{
		{Path: "faults[].after", Default: "0s", Doc: "time since the start of the run; with `when`: no earlier than this"},
		{Path: "faults[].when", Doc: "a trigger instead of an instant", Values: triggers()},
		{Path: "faults[].delay", Default: "0s", Doc: "time since the trigger"},
		{Path: "faults[].fault", Doc: "name in `chaos list faults`", Values: names},
		{Path: "faults[].target", Default: "that of the fault",
			Doc: "what it hits: a node, a client, or a word such as `master`"},
		{Path: "faults[].for", Default: "to the end", Doc: "time until it is healed"},
		{Path: "faults[].amount", Default: "that of the fault", Doc: "its magnitude, such as how far a clock jumps"},
		{Path: "faults[].hits", Doc: "the request that it must hit, else the run is inconclusive",
			Values: []string{history.Acquire, history.Release, history.Renew}},
		{Path: "faults[].optional", Default: "false",
			Doc: "it waits for no other step, and the run is not inconclusive if it is not injected or has no effect"},
		{Path: "faults[].random", Doc: "faults drawn from the seed, in place of all other keys of the step"},
	}
}

func randomKeys() []Key {
	return []Key{
		{Path: "faults[].random.of", Doc: "names of faults"},
		{Path: "faults[].random.every", Doc: "an interval: one fault starts in each, at a random instant"},
		{Path: "faults[].random.for", Default: "half of every", Doc: "time until it is healed"},
		{Path: "faults[].random.until", Default: "the duration", Doc: "no fault starts later than this"},
		{Path: "faults[].random.most", Default: "any number", Doc: "random faults in force at the same time"},
	}
}

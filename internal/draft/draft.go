// Package draft writes a new scenario as a commented text, for chaos init. Its Go API is not a promise.
//
// Read [Draft] first.
package draft

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Draft has the parts of a new scenario.
type Draft struct {
	Name     string
	Lock     string
	Topology string   // "": the first that the lock runs on
	Fault    string   // "": none
	Holds    []string // properties that must be tested and hold, also if the lock does not state them
}

// Topologies are the kinds of servers that the lock of the draft runs on.
func (d Draft) Topologies() []string {
	row, err := adapters.Lookup(d.Lock)
	return slices.DeleteFunc(slices.Clone(key("topology.kind").Values), func(kind string) bool {
		return err == nil && !row.Runs(kind)
	})
}

// Faults are the faults that the servers of the draft can have and that its lock can survive.
func (d Draft) Faults() []string {
	var names []string
	lock, _ := adapters.Lookup(d.Lock)
	for _, row := range faults.Catalog() {
		s := scenarios.Scenario{Faults: []scenarios.Step{{Fault: row.Name}}}
		s.Expect.Verdict, s.Workload.Kind = string(checker.Safe), d.workload()
		if row.WrongServers(cluster.Topology{Kind: d.topology()}) == "" && s.NotFor(lock.Can) == "" {
			names = append(names, row.Name)
		}
	}
	return names
}

func (d Draft) topology() string {
	if d.Topology == "" {
		return append(d.Topologies(), cluster.Single)[0]
	}
	return d.Topology
}

// Check reports the mistakes in the draft. An error names the flag of chaos init that it is about.
func (d Draft) Check() error {
	set := []scenarios.Override{
		{As: "name " + strconv.Quote(d.Name), Path: "name", Value: strconv.Quote(d.Name)},
		{As: "--lock " + d.Lock, Path: "lock", Value: strconv.Quote(d.Lock)},
		{As: "--topology " + d.topology(), Path: "topology.kind", Value: strconv.Quote(d.topology())},
		{As: "workload " + d.workload(), Path: "workload.kind", Value: d.workload()},
	}
	if d.topology() == cluster.Command {
		set = append(set, scenarios.Override{As: "run", Path: "topology.run", Value: strconv.Quote(exampleRun)})
	}
	valid := Draft{Name: "valid", Lock: client.ExecPrefix + "valid", Topology: cluster.Single}
	if d.Fault != "" {
		valid.Fault = "kill"
		set = append(set, scenarios.Override{
			As: "--fault " + d.Fault, Path: "faults[0].fault", Value: strconv.Quote(d.Fault),
		})
		set = append(set, d.settings()...)
	}
	for _, name := range d.Holds {
		set = append(set, scenarios.Override{As: "--holds " + name, Path: "expect.except." + name,
			Value: fmt.Sprintf("{outcome: %s, because: %s}", checker.Holds, heldBecause)})
	}
	if _, err := scenarios.Parse([]byte(valid.Text()), set...); err != nil {
		return err
	}
	return d.checkPromises()
}

// checkPromises reports properties that must hold although the lock does not promise their subject. The promises
// of a user's program are not known before it runs.
func (d Draft) checkPromises() error {
	row, err := adapters.Lookup(d.Lock)
	if err != nil || strings.HasPrefix(d.Lock, client.ExecPrefix) {
		return err
	}
	s, err := scenarios.Parse([]byte(Draft{Name: d.Name, Lock: d.Lock, Topology: d.Topology, Fault: d.Fault}.Text()))
	if err != nil {
		return err
	}
	for _, name := range d.Holds {
		x := s.Expected(row.Can)[checker.Property(name)]
		if !x.Has(checker.Holds) || strings.HasPrefix(x.Because, scenarios.Unstated) {
			return fmt.Errorf("--holds %s: lock %s cannot keep it here: %s", name, d.Lock, x.Because)
		}
	}
	return nil
}

// Text is the draft as a commented scenario. It is valid if Check returns nil.
func (d Draft) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A scenario of lockchaos. `chaos list keys` describes every key.\nname: %s\nsummary: %s\n",
		d.Name, strconv.Quote(d.summary()))
	fmt.Fprintf(&b, "\n# %s\ntopology:\n", keyDoc("topology"))
	kind := slices.IndexFunc(cluster.Topologies(), func(r cluster.TopologySpec) bool { return r.Name == d.topology() })
	line(&b, "  kind: "+d.topology(), cluster.Topologies()[kind].Doc)
	d.settingsText(&b)
	fmt.Fprintf(&b, "\n# %s\nlock: %s\n", keyDoc("lock"), strconv.Quote(d.Lock))
	d.workloadText(&b)
	d.faultText(&b)
	fmt.Fprintf(&b, "\n# %s\nduration: 12s\n", keyDoc("duration"))
	fmt.Fprintf(&b, "\n# %s\n", keyDoc("expect"))
	b.WriteString("# The outcome of each property follows from it, and from the promises of the lock.\n")
	d.expectText(&b)
	fmt.Fprintf(&b, "\n# %s\n# thresholds: ['acquire.p99 < 2s', 'free_while_waited.max < 500ms']\n", keyDoc("thresholds"))
	return b.String()
}

// heldBecause is the reason for an expectation of a draft.
const heldBecause = "this scenario is about it"

// outlives reports whether the lease of a holder ends while it is paused: then it is no longer alone, with
// any lock.
func (d Draft) outlives() bool {
	row, err := faults.Lookup(d.Fault)
	lock, _ := adapters.Lookup(d.Lock)
	return err == nil && row.Class == history.FaultPauses && !slices.Contains(row.Targets, faults.Node) &&
		d.workload() != "latch" && !lock.Can.Has(promise.Unleased)
}

func (d Draft) expectText(b *strings.Builder) {
	verdict := string(checker.Safe)
	if d.outlives() {
		verdict = string(checker.Unsafe) + ", " + string(checker.OutlivedLease)
		b.WriteString("# A holder that is paused until its lease has ended is no longer alone. No lock prevents it, and a\n" +
			"# guarded resource that checks fencing tokens does (workload.fenced).\n")
	}
	if len(d.Holds) == 0 {
		fmt.Fprintf(b, "expect: %s\n", verdict)
		return
	}
	fmt.Fprintf(b, "expect:\n  verdict: %s\n  except:\n", verdict)
	for _, name := range d.Holds {
		row, _ := checker.Find(checker.Property(name))
		line(b, fmt.Sprintf("    %s: {outcome: %s, because: %s}", name, checker.Holds, heldBecause), "violated: "+row.Doc)
	}
}

// settings are the server settings that the fault needs, sorted by name. Servers of the user have none.
func (d Draft) settings() (all []scenarios.Override) {
	row, _ := faults.Lookup(d.Fault) // an unknown fault has none
	if d.topology() == cluster.Command {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(row.Settings)) {
		all = append(all, scenarios.Override{
			As: name, Path: "topology.options." + name, Value: strconv.Quote(row.Settings[name][0]),
		})
	}
	return all
}

// exampleRun is a command line to be replaced.
const exampleRun = "my-server --listen {host}:{port.client} --data {disk}"

// commandText writes the keys of servers of the user.
func commandText(b *strings.Builder) {
	line(b, "  nodes: 1", keyDoc("topology.nodes"))
	fmt.Fprintf(b, "  # %s\n  run: %q\n", keyDoc("topology.run"), exampleRun)
	line(b, "  ready: {tcp: "+cluster.ClientPort+"}",
		keyDoc("topology.ready")+"; or {http: URL}, {command: …}, {log: text}")
	fmt.Fprintf(b, "  # role: {command: …}\n  # sample: {command: …}\n")
}

// settingsText writes the server settings that the fault needs, or the keys of servers of the user.
func (d Draft) settingsText(b *strings.Builder) {
	if d.topology() == cluster.Command {
		commandText(b)
	}
	all := d.settings()
	if len(all) == 0 {
		return
	}
	line(b, "  options:", keyDoc("topology.options"))
	for _, s := range all {
		fmt.Fprintf(b, "    %s: %s\n", s.As, s.Value)
	}
}

// summary names the fault and its effect, in one sentence.
func (d Draft) summary() string {
	row, err := faults.Lookup(d.Fault)
	if err != nil {
		return "clients contend for the lock, and nothing fails"
	}
	return "clients contend for the lock; fault " + row.Name + " " + strings.TrimSuffix(row.Doc, ".")
}

// workload is the workload for which the lock is made. A program of the user states no capabilities before it runs.
func (d Draft) workload() string {
	row, _ := adapters.Lookup(d.Lock)
	switch {
	case row.Can.Has(promise.Latch):
		return "latch"
	case row.Can.Has(promise.Permits):
		return "semaphore"
	case row.Can.Has(promise.ReadWrite):
		return "readers-writer"
	}
	return "mutex"
}

func (d Draft) workloadText(b *strings.Builder) {
	kind := d.workload()
	fmt.Fprintf(b, "\n# %s\nworkload:\n", keyDoc("workload"))
	line(b, "  kind: "+kind, keyDoc("workload.kind"))
	line(b, "  clients: 5", keyDoc("workload.clients"))
	line(b, "  keys: 1", keyDoc("workload.keys"))
	line(b, "  hold: 2500ms", keyDoc("workload.hold"))
	if kind != "latch" {
		line(b, "  lease: 4s", keyDoc("workload.lease"))
	}
	if kind == "semaphore" {
		line(b, "  permits: 3", keyDoc("workload.permits"))
	}
}

// faultText writes the fault, and as comments the other keys of its step.
func (d Draft) faultText(b *strings.Builder) {
	row, err := faults.Lookup(d.Fault)
	if err != nil {
		fmt.Fprintf(b, "\n# %s; see chaos list faults\nfaults: []\n", keyDoc("faults"))
		return
	}
	fmt.Fprintf(b, "\n# %s\nfaults:\n", keyDoc("faults"))
	line(b, "  - fault: "+row.Name, row.Doc)
	line(b, "    after: 1s", keyDoc("faults[].after"))
	if d.workload() != "latch" { // clients acquire no latch
		line(b, "    when: "+scenarios.Acquired, keyDoc("faults[].when")+": "+strings.Join(key("faults[].when").Values, ", "))
		line(b, "    delay: 50ms", keyDoc("faults[].delay"))
	}
	if row.OneShot || row.HealLast {
		line(b, "    # for: 6s", keyDoc("faults[].for"))
	} else {
		line(b, "    for: 6s", keyDoc("faults[].for"))
	}
	line(b, "    # target: "+row.TargetWords()[0], "or "+strings.Join(row.TargetWords()[1:], ", "))
	if row.Amount != nil {
		line(b, "    # amount: "+row.Amount.Default.String(), row.Amount.Doc)
	}
}

// line writes a line of the scenario and its comment.
func line(b *strings.Builder, text, comment string) { fmt.Fprintf(b, "%s # %s\n", text, comment) }

func keyDoc(path string) string { return key(path).Doc }

// keys are all keys of a scenario, found once.
//
//nolint:gochecknoglobals // computed once, never changed
var keys = sync.OnceValue(scenarios.Keys)

// key is a key of a scenario.
func key(path string) scenarios.Key {
	i := slices.IndexFunc(keys(), func(k scenarios.Key) bool { return k.Path == path })
	return keys()[i]
}

package scenarios

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// good is a correct scenario with add at its end.
func good(add string) string {
	return "name: x\nsummary: a test\ntopology: {kind: sentinel}\nlock: reentrant\nduration: 10s\n" + add
}

// drawn is a step of random faults.
func drawn(with string) string { return good("faults: [{random: {" + with + "}}]\n") }

func edited(old, now string) string { return strings.Replace(good(""), old, now, 1) }

// badText is a scenario with a mistake.
type badText struct{ name, text string }

// bad are texts that are refused; the golden file has the errors.
func bad() []badText { return slices.Concat(badTexts(), badLocks(), badAmounts(), badTogether()) }

// badLocks have bad locks for some of the clients.
func badLocks() []badText {
	return []badText{
		{"another lock that is unknown", good("locks:\n  - {lock: reentrent, clients: 1}\n")},
		{"options that another lock refuses", good("locks: [{lock: set-nx-px, clients: 1, options: {lease: 1s}}]\n")},
		{"another lock that lacks what the workload needs", good("locks: [{lock: latch, clients: 1}]\n")},
		{"another lock on another topology", good("locks: [{lock: redlock, clients: 1}]\n")},
		{"another lock without clients", good("locks: [{lock: spin}]\n")},
		{"other locks for all clients", good("workload: {clients: 4}\nlocks:\n  - {lock: spin, clients: 2}\n" +
			"  - {lock: fair, clients: 2}\n")},
		{"other locks in one process", good("workload: {per_process: 2}\nlocks: [{lock: spin, clients: 1}]\n")},
	}
}

// badAmounts have bad amounts and targets.
func badAmounts() []badText {
	return []badText{
		{"amount of a fault that has none", good("faults: [{fault: kill, amount: 3s}]\n")},
		{"amount out of bounds", good("faults:\n  - {fault: clock-jump, target: n2, amount: 25h}\n")},
		{"a fault that needs other settings of the servers", edited("{kind: sentinel}", "{kind: single}") +
			"faults: [{fault: slow-disk}]\n"},
		{"a fault that needs another value of a setting", edited("{kind: sentinel}",
			"{kind: single, options: {appendonly: \"yes\", appendfsync: \"no\"}}") + "faults: [{fault: slow-disk}]\n"},
		{"for too short to notice", good("faults: [{fault: silent-connections, for: 1s}]\n")},
		{"random for too short to notice", drawn("of: [silent-connections], every: 5s, for: 1s")},
		{"half of every too short to notice", drawn("of: [silent-connections], every: 3s")},
		{"amount without unit", good("faults: [{fault: latency, amount: 3}]\n")},
		{"amount of a random step", good("faults: [{amount: 3s, random: {of: [kill], every: 1s}}]\n")},
		{"negative most", drawn("of: [kill], every: 1s, most: -1")},
		{"a field that is not a key", good("faults: [{fault: kill, Most: 1}]\n")},
		{"target of a quorum on another topology", good("faults: [{fault: partition, target: majority}]\n")},
		{"threshold of an unknown metric", good("thresholds:\n  - acquire.p99 < 2s\n  - acquire.p98 < 2s\n")},
		{"unknown request to hit", good("faults: [{fault: reply-lost, hits: relese}]\n")},
		{"a request that a fault of servers cannot hit", good("faults: [{fault: kill, hits: release}]\n")},
		{"link to a client", good("faults: [{fault: partition, target: \"n1>client:0\"}]\n")},
		{"pause of clients that share a process",
			good("workload: {per_process: 5}\nfaults: [{fault: pause-client}, {random: {of: [client-crash], every: 1s}}]\n")},
		{"too many clients per process", good("workload: {per_process: 1001}\n")},
		{"negative clients per process", good("workload: {per_process: -1}\n")},
		{"link to a node that does not exist", good("faults: [{fault: partition, target: \"holder>n4\"}]\n")},
	}
}

// badTogether have faults that cannot be in force at the same time.
func badTogether() []badText {
	quorum := func(add string) string {
		return "name: x\ntopology: {kind: quorum}\nlock: redlock\nduration: 10s\n" + add
	}
	return []badText{
		{"target with a typo", good("faults: [{fault: kill, target: mater}]\n")},
		{"two faults of one process",
			good("faults:\n  - {fault: kill, target: n2}\n  - {after: 1s, fault: restart, target: n2}\n")},
		{"two faults of one link",
			good("faults:\n  - {fault: latency, target: all}\n  - {after: 1s, fault: jitter, target: n2}\n")},
		{"three of five down, three kept", quorum("keep: 3\nfaults:\n" +
			"  - {fault: restart, target: n1+n2, for: 2s}\n  - {after: 1s, fault: pause-node, target: n3, for: 1s}\n")},
		{"too many down, one of them known only in the run", quorum("keep: 4\nfaults:\n" +
			"  - {when: acquired, fault: partition, target: deciding, for: 1s}\n  - {after: 5s, fault: kill, target: n1}\n")},
		{"majority down, majority kept", quorum("keep: 3\nfaults: [{fault: partition, target: majority}]\n")},
		{"more kept than there are servers", quorum("keep: 6\n")},
		{"negative keep", quorum("keep: -1\n")},
		{"no lease where clients die", strings.Replace(good("expect: {verdict: safe}\n"+
			"faults: [{random: {of: [client-crash], every: 1s}}]\n"), "reentrant", "semaphore", 1)},
	}
}

// TestCompatibleFaults: one after the other, of different resources, and of one node.
func TestCompatibleFaults(t *testing.T) {
	for _, steps := range []string{
		"  - {fault: restart, target: n1+n2, for: 2s}\n  - {after: 2s, fault: pause-node, target: n3, for: 1s}\n",
		"  - {fault: pause-node, target: n1}\n  - {fault: partition, target: n1}\n  - {fault: kill, target: n2}\n",
		"  - {fault: partition, target: minority}\n  - {fault: partition, target: \"client:0>n5\"}\n",
		"  - {fault: latency, target: n1, for: 1s}\n  - {after: 1s, fault: jitter, target: n1}\n",
		"  - {fault: kill, target: n1}\n  - {fault: slow-node, target: majority}\n",
	} {
		text := "name: x\ntopology: {kind: quorum}\nlock: redlock\nduration: 10s\nkeep: 3\nfaults:\n" + steps
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s\n%v", steps, err)
		}
	}
}

// refusedOptions are a topology with options that redis-server refuses.
const refusedOptions = "{kind: sentinel, options: {appendonlyy: \"yes\",\n" +
	"  appendfsync: sometimes, maxmemory: lots, io-threads: \"500\", Include: /etc/redis.conf, SAVE: \"\", save: \"\"}}"

func badTexts() []badText {
	return append(badExpectations(), []badText{
		{"empty", ""},
		{"only a comment", "# nothing\n"},
		{"a list", "- a\n"},
		{"two scenarios in one file", good("---\nname: y\n")},
		{"not UTF-8", "name: \xff\xfe\n"},
		{"a zero byte", "name: \x00\n"},
		{"a tab", "name: x\n\tlock: y\n"},
		{"an open quote", "name: \"x\n"},
		{"a key twice", good("name: z\n")},
		{"an alias", good("options: &o {a: *o}\n")},
		{"a tag", good("options: !!map {a: b}\n")},
		{"a merge", good("options: {<<: {a: b}}\n")},
		{"no name", edited("name: x\n", "")},
		{"a name with slashes", edited("name: x", "name: ../../etc/x")},
		{"a name with a leading dot", edited("name: x", "name: .x")},
		{"a name with a space", edited("name: x", "name: a b")},
		{"no duration", edited("duration: 10s\n", "")},
		{"a negative duration", edited("10s", "-10s")},
		{"a duration without a unit", edited("10s", "10")},
		{"not a duration", edited("10s", "soon")},
		{"a duration of 25 hours", edited("10s", "25h")},
		{"an unknown key", good("fault: {}\n")},
		{"an unknown key in a section", good("workload: {clinets: 3}\n")},
		{"unknown topology", edited("sentinel", "sentinels")},
		{"no topology", edited("topology: {kind: sentinel}\n", "")},
		{"an impossible topology", edited("{kind: sentinel}", "{kind: quorum, masters: 4}")},
		{"options that redis-server refuses", edited("{kind: sentinel}", refusedOptions)},
		{"options that the lock refuses", good("options: {lease: the, replicas: some, session: 5s}\n")},
		{"unknown lock", edited("reentrant", "reentrent")},
		{"lock on another topology", edited("reentrant", "redlock")},
		{"unknown workload", good("workload: {kind: mutexes}\n")},
		{"too many clients", good("workload: {clients: 100000}\n")},
		{"two and a half clients", good("workload: {clients: 2.5}\n")},
		{"many clients", good("workload: {clients: many}\n")},
		{"a negative hold", good("workload:\n  clients: 3\n  hold: -1s\n")},
		{"fenced neither true nor false", good("workload: {fenced: maybe}\n")},
		{"a list of options", good("options: [a, b]\n")},
		{"unknown fault", good("faults:\n  - {after: 1s, fault: kil}\n")},
		{"unknown trigger", good("faults:\n  - {when: acqiured, fault: kill}\n")},
		{"fault on another topology",
			strings.Replace(good("faults: [{fault: failover}]\n"), "sentinel", "single", 1)},
		{"failover of a server without a standby", postgres("{kind: postgres}")},
		{"commits that wait for no standby", postgres("{kind: postgres, options: {synchronous_standby_names: '*'}}")},
		{"target that the fault does not take", good("faults: [{fault: kill, target: holder}]\n")},
		{"node that does not exist", good("faults: [{fault: kill, target: n4}]\n")},
		{"client that does not exist", good("faults: [{fault: pause-client, target: \"client:5\"}]\n")},
		{"replica that does not exist",
			strings.Replace(good("faults: [{fault: kill, target: replica}]\n"), "sentinel", "single", 1)},
		{"after the end of the run", good("faults: [{after: 10s, fault: kill}]\n")},
		{"before the start of the run", good("faults: [{after: -1s, fault: kill}]\n")},
		{"negative for", good("faults: [{for: -1s, fault: kill}]\n")},
		{"delay without a trigger", good("faults: [{delay: 1s, fault: kill}]\n")},
		{"negative delay", good("faults: [{when: acquired, delay: -1s, fault: kill}]\n")},
		{"step without a fault", good("faults: [{after: 1s}]\n")},
		{"fault and random", good("faults: [{fault: kill, random: {of: [kill], every: 1s}}]\n")},
		{"trigger and random", good("faults: [{when: acquired, random: {of: [kill], every: 1s}}]\n")},
		{"random without of", drawn("every: 1s")},
		{"random of an unknown fault", drawn("of: [kill, pause], every: 1s")},
		{"random without every", drawn("of: [kill]")},
		{"random less often than once", drawn("of: [kill], every: 11s")},
		{"random until after the end of the run", drawn("of: [kill], every: 1s, until: 11s")},
		{"random with a negative until", drawn("of: [kill], every: 1s, until: -1s")},
		{"random too often", drawn("of: [kill], every: 1ns")},
		{"several mistakes, in the order of the text", "name: a/b\ntopology: {kind: single}\nlock: nothing\n" +
			"duration: 2s\nfaults:\n- {fault: kil}\n- {after: 3s, fault: kill}\nexpect: {verdict: good}\n"},
		{"more mistakes than are reported", good("faults:\n" + strings.Repeat("- {fault: kil, when: never}\n", 500))},
	}...)
}

// postgres is a scenario with a failover, of a lock in that topology.
func postgres(topology string) string {
	return "name: a\nabout: x\nsummary: x\ntopology: " + topology + "\nlock: sql-lease\nduration: 10s\n" +
		"faults: [{fault: failover}]\nexpect: safe\n"
}

func TestBadScenarios(t *testing.T) {
	var got strings.Builder
	for _, test := range bad() {
		s, err := Parse([]byte(test.text))
		if err == nil {
			t.Errorf("%s: no error: %+v", test.name, s)
			continue
		}
		if s.Name != "" {
			t.Errorf("%s: a scenario with the error: %+v", test.name, s)
		}
		fmt.Fprintf(&got, "== %s\n%v\n\n", test.name, err)
	}
	goldenErrors(t, "bad.golden", got.String())
}

// goldenErrors compares got with a file, without lists of known names.
func goldenErrors(t *testing.T, name, got string) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", name),
		regexp.MustCompile(`; known are [^\n]*`).ReplaceAllString(got, "; known are …"))
}

// TestHostileTexts: none of them takes long.
func TestHostileTexts(t *testing.T) {
	const most = 30 * time.Second // on a busy machine; otherwise milliseconds
	bomb, last := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n", "a0"
	for i := 1; i < 10; i++ {
		next := fmt.Sprint("a", i)
		bomb += next + ": &" + next + " [" + strings.TrimSuffix(strings.Repeat("*"+last+",", 9), ",") + "]\n"
		last = next
	}
	var stairs strings.Builder
	for i := range 240 {
		fmt.Fprintf(&stairs, "%sa:\n", strings.Repeat(" ", i))
	}
	for name, text := range map[string]string{
		"bomb":            good(bomb),
		"brackets":        good("about: " + strings.Repeat("[", maxText-200)),
		"braces":          good("about: " + strings.Repeat("{a: ", maxText/4-50)),
		"stairs":          "options:\n" + stairs.String(),
		"dashes":          strings.Repeat("- ", maxText/2),
		"a million bytes": strings.Repeat("x", 1_000_000),
		"questions":       strings.Repeat("? ", maxText/2),
		"quotes":          good("about: " + strings.Repeat(`"'`, maxText/2-100)),
		"comments":        strings.Repeat("#\n", maxText/2),
		"many keys":       good("options: {" + strings.Repeat("a: b, ", maxText/6-50) + "}"),
		"many mistakes":   good("faults:\n" + strings.Repeat("- {fault: x}\n", 2_400)),
		"tags":            good("about: " + strings.Repeat("!!x ", maxText/4-50)),
		"many faults":     good("faults:\n" + strings.Repeat("- {fault: kill}\n", 1_900)),
	} {
		for _, set := range [][]string{nil, {"duration=11s"}} {
			start := time.Now()
			_, err := Parse([]byte(text), Sets(set)...)
			if took := time.Since(start); took > most {
				t.Errorf("%s takes %v", name, took)
			}
			if err == nil && name != "many faults" {
				t.Errorf("%s: no error", name)
			}
			if n := len(fmt.Sprint(err)); n > 4*maxText {
				t.Errorf("%s: the error has %d bytes", name, n)
			}
		}
	}
}

// TestEveryNamedScenario: each is complete, can be planned, its lock takes its options (Load refuses it otherwise),
// and it is the same when it is written and read again.
func TestEveryNamedScenario(t *testing.T) {
	all, err := Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		e := Entries()[i]
		if s.Name != e.Name || s.Summary == "" || s.Source == "" || s.About == "" || s.Expect.Verdict == "" {
			t.Errorf("%s lacks a summary, a source, a paragraph or an expected verdict, or has another name", e.Name)
		}
		if (e.Kind == Story) != (s.Production != "") {
			t.Errorf("%s is a %s; what it means in production: %q", s.Name, e.Kind, s.Production)
		}
		row, err := adapters.Lookup(s.Lock)
		if err != nil || row.CheckOptions == nil {
			t.Errorf("%s: the options of lock %s are not checked (%v)", s.Name, s.Lock, err)
		}
		checkPlan(t, s, s.Plan(1))
		copied, err := Parse([]byte(s.YAML()))
		if err != nil {
			t.Errorf("%s, written and read again: %v", s.Name, err)
		}
		if diff := cmp.Diff(s, copied); diff != "" {
			t.Errorf("%s, written and read again (-first +again):\n%s", s.Name, diff)
		}
		if e.Kind == Probe {
			continue
		}
		fromFile, err := Load(filepath.Join("stories", e.Group, s.Name+".yaml"))
		if err != nil || cmp.Diff(s, fromFile) != "" {
			t.Errorf("%s from its file: %v\n%s", s.Name, err, cmp.Diff(s, fromFile))
		}
	}
}

// TestYAMLKeepsEverything: every field is the same when it is written and read again.
func TestYAMLKeepsEverything(t *testing.T) {
	want := Scenario{
		Name: "all", Summary: "it's \"all\": here, # and there", Source: "- a", About: "one\n\n  two\n", Lock: "exec:client",
		Topology: cluster.Topology{
			Kind: "quorum", Masters: 3, Options: map[string]string{"save": "3600 1", "appendonly": "yes"},
		},
		Options: map[string]string{"a": "1", "b": "true", "c": "null", "d": "", "e": "~", "f": "0x1F", "g": "1e3",
			"h": " x "},
		Locks: []Group{{"exec:other", map[string]string{"a": "2"}, 2}, {"exec:third", nil, 1}},
		Workload: workload.Params{Kind: "mutex", Clients: 4, Keys: 2, Hold: 1500 * time.Microsecond, Jitter: 1,
			Think: time.Hour, Lease: 90 * time.Second, Wait: time.Second, Fenced: true},
		Faults: []Step{
			{After: time.Second, When: "waiting", Delay: 1, Fault: "kill", Target: "n3", For: 1500 * time.Millisecond},
			{When: "releasing", Fault: "clock-jump", Target: "n2", Amount: -3 * time.Second},
			{Random: &Random{Of: []string{"kill", "pause-client"}, Every: time.Second, For: time.Second,
				Until: 5 * time.Second, Most: 2}},
		},
		Duration: time.Minute, Expect: Expect{
			"unsafe, broken promise", map[string]Exception{"leak": {"holds or violated", "a reason: #1, \"two\""}}},
		Twin: &Twin{Scenario: "failover-wait-all", Set: []string{"lock=redlock"}},
	}
	got, err := Parse([]byte(want.YAML()))
	if err != nil {
		t.Fatalf("%v, in\n%s", err, want.YAML())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +read):\n%s\n%s", diff, want.YAML())
	}
	overridden, err := Parse([]byte(want.YAML()), Sets([]string{"name=all"})...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, overridden); diff != "" {
		t.Errorf("through --set (-written +read):\n%s", diff)
	}
}

func TestLoadReportsUnknownNames(t *testing.T) {
	for name, want := range map[string]string{
		"failovr": "did you mean failover?", "": "unknown scenario", "nowhere/x.yaml": "no such file",
		"x.yml": "no such file", "\x00": "unknown scenario", "..": "unknown scenario",
	} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q) = %v, want %q", name, err, want)
		}
	}
}

// FuzzParse: Parse neither panics nor hangs, and an accepted scenario can be written, read again and planned.
func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		text, err := named(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, test := range bad() {
		f.Add(test.text)
	}
	f.Add(drawn("of: [kill, pause-client, pause-node, failover], every: 1s, for: 5s"))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]byte(text))
		if err != nil {
			return
		}
		row, err := adapters.Lookup(s.Lock)
		if err != nil || row.CheckOptions == nil {
			t.Errorf("%s: the options of lock %s are not checked (%v)", s.Name, s.Lock, err)
		}
		checkPlan(t, s, s.Plan(1))
		copied, err := Parse([]byte(s.YAML()))
		if err != nil {
			t.Fatalf("%q was accepted, and then, written as\n%s\nrefused: %v", text, s.YAML(), err)
		}
		if one, two := s.YAML(), copied.YAML(); one != two {
			t.Fatalf("it changes when written again:\n%s\n%s", one, two)
		}
		checkPlan(t, s, s.Plan(1))
	})
}

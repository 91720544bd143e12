package story

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// storyOf judges a history in the text notation, and writes its story; nodes are the nodes of the run.
func storyOf(t *testing.T, text string, nodes ...string) *evidence.Run {
	t.Helper()
	h, err := foreign.ReadText(strings.NewReader(text), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	m := rundir.Manifest{Clients: h.Clients, Topology: cluster.Topology{Kind: cluster.Single}}
	for _, name := range nodes {
		m.Nodes = append(m.Nodes, cluster.Node{Name: name})
	}
	r := evidence.New(m, h, h.Samples, checker.Judge(h, checker.Options{MinContendedGrants: -1}))
	Write(r)
	return r
}

// storyTest is a history and the expected text of its story.
type storyTest struct {
	history  string
	class    checker.Class
	cause    string
	sentence string // the beginning
	advice   string // part of the first advice
}

func (test storyTest) check(t *testing.T, nodes ...string) {
	t.Helper()
	r := storyOf(t, test.history, nodes...)
	advice := ""
	if len(r.Story.Advice) > 0 {
		advice = r.Story.Advice[0].Text
	}
	if r.Judgement.Class != test.class || r.Story.Cause != test.cause ||
		!strings.HasPrefix(r.Story.Sentence, test.sentence) || !strings.Contains(advice, test.advice) {
		t.Errorf("%s (%s): %s\nadvice: %s\nwant %s (%s): %s", r.Story.Cause, r.Judgement.Class, r.Story.Sentence, advice,
			test.cause, test.class, test.sentence)
	}
	if r.Worst == nil || r.Worst.Class != test.class {
		t.Errorf("the page explains %+v, want a violation of the class %q", r.Worst, test.class)
	}
}

// TestOneStory: class, headline and advice are about the same violation. Client 0 outlives its lease in each history,
// and a correct lock cannot prevent that; but a release of its own that removes or confirms the lock of the next holder
// is a broken promise.
func TestOneStory(t *testing.T) {
	const outlived = `clients 2
client 0 acquire orders 1.0-1.01 ok owner=a lease=1s valid=980ms
client 1 acquire orders 1.2-2.1 ok owner=b lease=2s valid=1.98s
`
	const held = `client 1 release orders 3.0-3.1 ok owner=b
witness n1 1.5 orders owner=a ttl=500ms
witness n1 2.3 orders owner=b ttl=1.8s
witness n1 2.7 orders owner=b ttl=1.4s
`
	for name, test := range map[string]storyTest{
		"removed": {outlived + `client 0 release orders 2.5-2.6 ok owner=a
client 1 release orders 3.0-3.1 fail owner=b code=not-held
witness n1 2.3 orders owner=b ttl=1.8s
witness n1 2.7
`, checker.BrokenPromise, "foreign-release", "Client 0, granted `orders` at 1.010 s, released it at 2.500 s, past the end " +
			"of its validity at 1.990 s, without an error, although client 1 had been granted it at 2.100 s; the key of " +
			"client 1 was no longer there at 2.700 s", "compare and delete"},
		"confirmed": {outlived + "client 0 release orders 2.5-2.6 ok owner=a\n" + held, checker.BrokenPromise,
			"loss-confirmed", "Client 0, granted `orders` at 1.010 s, released it at 2.500 s, past the end of its validity at " +
				"1.990 s, without an error, although client 1 had been granted it at 2.100 s, and n1 kept it for that client",
			"report success only if it found the hold"},
		"refused": {outlived + "client 0 release orders 2.5-2.6 fail owner=a code=not-held\n" + held, checker.OutlivedLease,
			"outlived-lease", "Client 0 and client 1 both held `orders` for 400 ms: client 0, granted it at 1.010 s, kept it " +
				"until 2.500 s although its validity had ended at 1.990 s", "Renew the lock while the work lasts"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}

// TestStolen: a renewal that sets the key back takes it from its next holder, and an acquire that does not look takes
// it from its holder; their twins compare. The servers store values that name no owner.
func TestStolen(t *testing.T) {
	const holds = `clients 2
client 0 acquire orders 1.0-1.01 ok owner=a lease=1s
client 1 acquire orders 1.2-2.05 ok owner=b lease=2s
`
	const before = `witness n1 0.9
witness n1 1.1 orders owner=f3a1 ttl=900ms
witness n1 1.9 orders owner=f3a1 ttl=100ms
witness n1 2.1 orders owner=77b0 ttl=1.95s
witness n1 2.5 orders owner=77b0 ttl=1.55s
`
	for name, test := range map[string]storyTest{
		"renewal": {holds + `client 1 release orders 3.5-3.6 fail owner=b code=not-held
client 0 release orders 3.7-3.8 ok owner=a
` + before + `witness n1 2.6 orders owner=f3a1 ttl=1s
witness n1 3.4 orders owner=f3a1 ttl=200ms
`, checker.BrokenPromise, "stolen", "Client 0 took `orders` from client 1, which had been granted it at 2.050 s: n1 kept " +
			"it for client 1 at 2.500 s, with a lease until 4.050 s, and for client 0 at 2.600 s", "Compare before you renew"},
		"renewal that compares": {holds + `client 1 release orders 3.5-3.6 ok owner=b
client 0 release orders 3.7-3.8 fail owner=a code=not-held
` + before + `witness n1 2.6 orders owner=77b0 ttl=1.45s
witness n1 3.4 orders owner=77b0 ttl=650ms
`, checker.OutlivedLease, "outlived-lease", "Client 0 and client 1 both held `orders`", "Renew the lock while"},
		"acquire": {strings.Replace(holds, "clients 2", "clients 3", 1) + `client 2 acquire orders 2.6-2.7 ok owner=c lease=2s
client 2 release orders 3.3-3.4 ok owner=c
client 1 release orders 3.5-3.6 fail owner=b code=not-held
client 0 release orders 3.7-3.8 fail owner=a code=not-held
` + before + `witness n1 2.8 orders owner=90c2 ttl=1.9s
witness n1 3.2 orders owner=90c2 ttl=1.5s
witness n1 3.5
`, checker.BrokenPromise, "overwritten", "Client 1 and client 2 both held `orders` for 600 ms: client 2 took it from client 1, " +
			"which had been granted it at 2.050 s: n1 kept it for client 1 at 2.500 s, with a lease until 4.050 s, and for " +
			"client 2 at 2.800 s; the acquire of client 2, granted at 2.700 s, set the key although it was taken",
			"sets the key only if it is absent"},
		"a renewal of another's": {holds + `client 0 renew orders 2.2-2.3 ok owner=a lease=1s
client 1 release orders 2.35-2.4 ok owner=b
client 0 release orders 3.7-3.8 fail owner=a code=not-held
`, checker.BrokenPromise, "stolen", "Client 0 and client 1 both held `orders` for 300 ms: client 0, granted it at " +
			"1.010 s, kept it past the end of its requested lease at 2.000 s; client 1 got the lock at 2.050 s, " +
			"and client 0 renewed it at 2.300 s without an error", "Compare before you renew"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}

// TestSetBack: a release that succeeds although another client has the lock found its own value, because a renewal had
// set the key back; or, where nothing shows that, it did not compare the value.
func TestSetBack(t *testing.T) {
	const released = `clients 3
client 0 acquire orders 1.0-1.01 ok owner=a lease=1s
client 1 acquire orders 1.2-2.05 ok owner=b lease=2s
client 0 release orders 2.5-2.55 ok owner=a
client 2 acquire orders 2.1-2.6 ok owner=c lease=1s
client 2 release orders 3.4-3.45 ok owner=c
client 1 release orders 3.5-3.6 fail owner=b code=not-held
witness n1 0.9
witness n1 1.1 orders owner=f3a1 ttl=900ms
witness n1 1.9 orders owner=f3a1 ttl=100ms
witness n1 2.1 orders owner=77b0 ttl=1.95s
`
	const shown = "witness n1 2.48 orders owner=77b0 ttl=1.57s\n"
	const after = "witness n1 2.57\nwitness n1 2.7 orders owner=90c2 ttl=900ms\nwitness n1 3.48\n"
	const elsewhere = `client 0 acquire orders 4.0-4.01 ok owner=d lease=1s
client 1 acquire orders 4.2-5.05 ok owner=e lease=2s
client 1 release orders 6.5-6.6 fail owner=e code=not-held
client 0 release orders 6.7-6.8 ok owner=d
witness n1 4.1 orders owner=f3a3 ttl=900ms
witness n1 4.9 orders owner=f3a3 ttl=100ms
witness n1 5.1 orders owner=77b2 ttl=1.95s
witness n1 5.5 orders owner=77b2 ttl=1.55s
witness n1 5.6 orders owner=f3a3 ttl=1s
witness n1 6.4 orders owner=f3a3 ttl=200ms
`
	const acquired = `client 0 acquire orders 4.0-4.01 ok owner=d lease=2s
client 1 acquire orders 4.2-4.5 ok owner=e lease=2s
client 1 release orders 5.0-5.1 ok owner=e
client 0 release orders 5.2-5.3 fail owner=d code=not-held
witness n1 4.1 orders owner=f3a3 ttl=1.9s
witness n1 4.49-4.51 orders owner=f3a3 ttl=1.5s
witness n1 4.6 orders owner=77b2 ttl=1.9s
witness n1 5.11
`
	const both = "Client 1 and client 2 both held `orders` for 800 ms: client 0, "
	for name, test := range map[string]storyTest{
		"by a renewal": {released + "client 0 renew orders 2.3-2.35 ok owner=a lease=1s\n" + shown + after, checker.BrokenPromise,
			"stolen", both + "granted `orders` at 1.010 s, renewed it at 2.300 s without an error, although client 1 had been " +
				"granted it at 2.050 s; it released it at 2.500 s; client 2 got the lock at 2.600 s", "Compare before you renew"},
		"as a sample shows": {released + "witness n1 2.48 orders owner=f3a1 ttl=900ms\n" + after, checker.BrokenPromise, "stolen",
			both + "granted `orders` at 1.010 s, renewed it without comparing the value of the key: n1 had it for client 0 at " +
				"2.480 s", "Compare before you renew"},
		"as other samples show": {released + shown + after + elsewhere, checker.BrokenPromise, "stolen", both + "granted `orders` at " +
			"1.010 s, released it at 2.500 s without an error, although client 1 had been granted it at 2.050 s: renewals set " +
			"the key without comparing its value, as that of client 0 did in place of client 1 by 5.600 s",
			"Compare before you renew"},
		"by a release, and an acquire takes the lock elsewhere": {released + shown + after + acquired, checker.BrokenPromise,
			"foreign-release", both, "compare and delete"},
		"by a release that does not compare": {released + shown + after, checker.BrokenPromise, "foreign-release",
			"Client 1 and client 2 both held `orders` for 800 ms: client 0, after the end of its requested lease at 2.000 s, " +
				"released it at 2.500 s", "compare and delete"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}

// TestRenewedByAnother: a holder that is refused lost the lock to the renewal of another owner that succeeded; a
// renewal that compares fails, and takes nothing.
func TestRenewedByAnother(t *testing.T) {
	const history = `clients 2
client 0 acquire orders 1.0-1.1 ok owner=a lease=2s
client 1 renew orders 1.3-1.4 %s owner=x lease=2s
client 0 release orders 1.6-1.7 %s owner=a
witness n1 0.9
witness n1 1.2 orders owner=f3a1 ttl=1.8s
`
	r := storyTest{fmt.Sprintf(history, "ok", "fail code=not-held") + "witness n1 1.5 orders owner=0c0c ttl=1.9s\n",
		checker.BrokenPromise, "stolen", "Client 1 renewed `orders` at 1.300 s without an error for an owner that had never " +
			"held it, although client 0 had been granted it at 1.100 s", "Compare before you renew"}
	r.check(t, "n1")
	twin := fmt.Sprintf(history, "fail code=not-held", "ok") +
		"witness n1 1.5 orders owner=f3a1 ttl=1.5s\nwitness n1 1.8\n"
	if r := storyOf(t, twin, "n1"); r.Judgement.Verdict == checker.Unsafe {
		t.Errorf("a renewal that compares: %s", r.Story.Sentence)
	}
}

// TestLeaseOfAGrant: a lease without a stated validity ends neither before its grant nor before a sample says so.
func TestLeaseOfAGrant(t *testing.T) {
	const other = `clients 2
client 0 acquire orders 1.0-5.0 ok owner=a lease=1500ms
client 1 acquire orders 1.1-%s ok owner=b lease=1500ms
client 0 release orders 7.4-7.5 fail owner=a code=not-held
client 1 release orders 7.6-7.7 fail owner=b code=not-held
`
	shown := "witness n1 4.9\nwitness n1 5.1 orders owner=a ttl=1400ms\n"
	for name, test := range map[string]storyTest{
		"from the grant": {fmt.Sprintf(other, "5.9"), checker.BrokenPromise, "unknown",
			"Client 0 and client 1 both held `orders` for 1.50 s: client 0 was granted the lock at 5.000 s", ""},
		"as a sample shows": {fmt.Sprintf(other, "6.4") + shown, checker.BrokenPromise, "unknown",
			"Client 0 and client 1 both held `orders` for 1.00 s: client 0 was granted the lock at 5.000 s", ""},
		"after the end": {fmt.Sprintf(other, "6.6") + shown, checker.OutlivedLease, "outlived-lease",
			"Client 0 and client 1 both held `orders` for 800 ms: client 0, granted it at 5.000 s, kept it until 7.400 s " +
				"although its requested lease had ended at 6.500 s", "Renew the lock while"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}

// TestGrantsOfServers: a server is said to have granted a hold only if a sample shows it. In each history the acquire
// of client 2 succeeds at the end of its wait; the servers have the lock for client 1 all the time, have another value
// for it, or never have a record of it.
func TestGrantsOfServers(t *testing.T) {
	const before = `clients 3
client 0 acquire orders 1.0-1.1 ok owner=holder-0 lease=9s
client 0 release orders 2.0-2.01 ok owner=holder-0
client 1 acquire orders 1.2-2.1 ok owner=holder-1 lease=9s
client 2 acquire orders 1.2-2.5 ok owner=holder-2 lease=9s
client 1 release orders 3.5-3.51 ok owner=holder-1
client 2 release orders 3.6-3.61 ok owner=holder-2
witness n1 0.9
`
	const both = "Client 1 and client 2 both held `orders` for 1.00 s: "
	for name, test := range map[string]storyTest{
		"not recorded": {before + `witness n1 1.5 orders owner=holder-0 ttl=8.6s
witness n1 2.2 orders owner=holder-1 ttl=8.9s
witness n1 2.7 orders owner=holder-1 ttl=8.4s
`, checker.BrokenPromise, "not-recorded", both + "client 1 was granted the lock at 2.100 s by n1; client 2, whose acquire " +
			"succeeded at 2.500 s, believed that it had it; no server recorded it: n1 had it for client 1 at 2.700 s",
			"check the result"},
		"recorded": {before + `witness n1 1.5 orders owner=holder-0 ttl=8.6s
witness n1 2.2 orders owner=holder-1 ttl=8.9s
witness n1 2.7 orders owner=holder-2 ttl=8.8s
`, checker.BrokenPromise, "taken-over-twice", both + "client 0 released it at 2.000 s while the acquires of both were in " +
			"flight: n1 granted it to client 1 at 2.100 s and to client 2 at 2.500 s", ""},
		"overwritten in this run": {before + `client 0 acquire orders 4.0-4.01 ok owner=holder-3 lease=9s
client 1 acquire orders 4.2-4.21 ok owner=holder-4 lease=9s
client 0 release orders 4.3-4.31 fail owner=holder-3
client 1 release orders 4.4-4.41 ok owner=holder-4
witness n1 1.5 orders owner=holder-0 ttl=8.6s
witness n1 2.2 orders owner=holder-1 ttl=8.9s
witness n1 2.7 orders owner=holder-1 ttl=8.4s
witness n1 4.1 orders owner=holder-3 ttl=8.9s
witness n1 4.25 orders owner=holder-4 ttl=8.9s
`, checker.BrokenPromise, "overwritten", "Client 0 and client 1 both held `orders` for 90 ms", "Acquire with one command"},
		"not sampled meanwhile": {before + `witness n1 1.5 orders owner=holder-0 ttl=8.6s
witness n1 2.2 orders owner=holder-1 ttl=8.9s
`, checker.BrokenPromise, "taken-over-twice", both + "client 0 released it at 2.000 s while the acquires of both were in " +
			"flight: n1, the only node, granted it to client 1 at 2.100 s and to client 2 at 2.500 s", ""},
		"stalled": {before + `nemesis client-stalled 2.49 note target=client:2 lasted=450ms
witness n1 1.5 orders owner=holder-0 ttl=8.6s
witness n1 2.2 orders owner=holder-1 ttl=8.9s
witness n1 2.7 orders owner=holder-1 ttl=8.4s
`, checker.BrokenPromise, "taken-over-twice", both + "client 0 released it", ""},
		"one value for all": {before + `witness n1 1.5 orders owner=1 ttl=8.6s
witness n1 2.2 orders owner=1 ttl=8.9s
witness n1 2.7 orders owner=1 ttl=8.4s
`, checker.BrokenPromise, "taken-over-twice", both + "client 0 released it", ""},
		"on no server of the run": {strings.Replace(before, "client 0 release orders 2.0-2.01 ok", "client 0 release orders "+
			"1.15-1.16 ok", 1) + "witness n1 2.2\nwitness n1 2.7\n", checker.BrokenPromise, "unknown", both + "client 1 was " +
			"granted the lock at 2.100 s (no server of the run recorded it), client 2 was granted it at 2.500 s (no server " +
			"of the run recorded it)", ""},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
	unsampled := strings.NewReplacer("witness n1 0.9\n", "", "2.0-2.01", "1.15-1.16").Replace(before)
	storyTest{unsampled, checker.BrokenPromise, "unknown", both + "client 1 was granted the lock at 2.100 s (nodes were " +
		"not sampled), client 2 was granted it at 2.500 s, ", ""}.check(t, "n1", "n2")
}

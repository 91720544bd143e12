package story

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// storyOf judges a history in the text notation, and writes its story; nodes are those of the run.
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

// storyTest is a history and what its story says.
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

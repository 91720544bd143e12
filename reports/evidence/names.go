package evidence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// ClientName is how every format names a client.
func ClientName(c int) string { return fmt.Sprintf("client %d", c) }

// TargetName is the target of a fault for people: "client:3" is client 3.
func TargetName(target string) string {
	if c, ok := strings.CutPrefix(target, "client:"); ok {
		return "client " + c
	}
	return target
}

// Subject is the target of a fault, or several, as the subject of a sentence: "n4 and n5", "the link of n2 to n1".
func Subject(target string) string {
	switch target {
	case "all":
		return "every link"
	case "ring":
		return "every link outside a ring of the nodes"
	case "bridge":
		return "every link between two halves of the nodes"
	}
	from, to, link := strings.Cut(target, ">")
	if link {
		return "the link of " + TargetName(from) + " to " + TargetName(to)
	}
	many := strings.Split(target, "+")
	for i := range many {
		many[i] = TargetName(many[i])
	}
	return List(many)
}

// NoteText is an observation that belongs to no fault; most name their target.
func NoteText(n history.Fault) string {
	if target := TargetName(n.Target); strings.Contains(n.Detail, target) {
		return n.Name + ": " + n.Detail
	}
	return strings.Join(strings.Fields(n.Name+" "+TargetName(n.Target)+" "+n.Detail), " ")
}

// MasterWord is the servers' term for the deciding server, such as master or leader.
func (r *Run) MasterWord() string {
	if r.ByMajority() {
		return "leader"
	}
	return "master"
}

// Quote puts a name in backquotes, which HTML and Markdown turn into code. A
// backquote in the name, which a hostile key may have, becomes an apostrophe. A lock
// without a name, as in some histories of other suites, is "the lock".
func Quote(name string) string {
	if name == "" {
		return "the lock"
	}
	return "`" + strings.NewReplacer("`", "'", "\n", "\uFFFD", "\r", "\uFFFD").Replace(name) + "`"
}

// PlainText is a text of the run for other tools: on one line, with the names of clients.
func (r *Run) PlainText(s string) string {
	return format.Line(r.History.NameProcesses(strings.ReplaceAll(s, "`", "")))
}

// List is a list of words: "n1, n2 and n3".
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// StateText says why a run that began is not complete; "" if it is, or if it never began: then the verdict says so.
func StateText(m *rundir.Manifest) string {
	if m.NotRun() != "" {
		return ""
	}
	switch m.State {
	case rundir.Complete, "":
		return ""
	case rundir.Interrupted:
		return "The run was interrupted; what it recorded until then is shown and judged."
	case rundir.Broken:
		return "The run failed: " + m.Failure
	}
	return "The run did not complete: it is still running, or it was killed."
}

// IsNotApplicable reports whether a property is not applicable and need not be: one line lists those.
func IsNotApplicable(r *Run, res *checker.Result) bool {
	expected := r.Manifest.Expect[string(res.Property)]
	return res.Outcome == checker.NotApplicable &&
		(expected == "" || slices.Contains(expect.Outcomes(expected), string(checker.NotApplicable)))
}

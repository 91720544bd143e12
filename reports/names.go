package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// clientName is how every format names a client.
func clientName(c int) string { return fmt.Sprintf("client %d", c) }

// targetName is the target of a fault for people: "client:3" is client 3.
func targetName(target string) string {
	if c, ok := strings.CutPrefix(target, "client:"); ok {
		return "client " + c
	}
	return target
}

// subject is the target of a fault, or several, as the subject of a sentence: "n4 and n5", "the link of n2 to n1".
func subject(target string) string {
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
		return "the link of " + targetName(from) + " to " + targetName(to)
	}
	many := strings.Split(target, "+")
	for i := range many {
		many[i] = targetName(many[i])
	}
	return list(many)
}

// noteText is an observation that belongs to no fault; most name their target.
func noteText(n history.Fault) string {
	if target := targetName(n.Target); strings.Contains(n.Detail, target) {
		return n.Name + ": " + n.Detail
	}
	return strings.Join(strings.Fields(n.Name+" "+targetName(n.Target)+" "+n.Detail), " ")
}

// masterWord is what the servers call the one that decides.
func (r *Run) masterWord() string {
	if r.byMajority() {
		return "leader"
	}
	return "master"
}

// quote puts a name in backquotes, which HTML and Markdown turn into code. A
// backquote in the name, which a hostile key may have, becomes an apostrophe. A lock
// without a name, as in some histories of other suites, is "the lock".
func quote(name string) string {
	if name == "" {
		return "the lock"
	}
	return "`" + strings.NewReplacer("`", "'", "\n", "\uFFFD", "\r", "\uFFFD").Replace(name) + "`"
}

// plainText is a text of the run for other tools: on one line, with the names of clients.
func (r *Run) plainText(s string) string {
	return format.Line(r.History.NameProcesses(strings.ReplaceAll(s, "`", "")))
}

// list is a list of words: "n1, n2 and n3".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func stateText(m *rundir.Manifest) string {
	switch m.State {
	case rundir.Interrupted:
		return "The run was interrupted; what it recorded until then is shown and judged."
	case rundir.Broken:
		return "The run failed: " + m.Failure
	}
	return "The run did not complete: it is still running, or it was killed."
}

// isNotApplicable reports whether a property is not applicable and need not be: one line lists those.
func isNotApplicable(r *Run, res *checker.Result) bool {
	expected := r.Manifest.Expect[string(res.Property)]
	return res.Outcome == checker.NotApplicable &&
		(expected == "" || slices.Contains(checker.ExpectedOutcomes(expected), string(checker.NotApplicable)))
}

package generator

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/faults"
)

//go:embed reference.md
var referenceHead string

// Reference is the page docs/reference/generated-scenarios.md: the parts of generated scenarios, and the faults that
// locks survive.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("\n| fault | survived by | not survived, because |\n| --- | --- | --- |\n")
	for _, t := range tolerances() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", t.fault, t.survivors(), t.because)
	}
	return b.String()
}

// survivors names the locks that survive the fault, the servers and further conditions; "": none is certain to.
func (t tolerance) survivors() string {
	if t.weight == 0 {
		return ""
	}
	row, _ := faults.Lookup(t.fault) // a test compares both tables
	kinds := t.only
	if kinds == nil {
		kinds = row.Topologies
	}
	text := "every lock"
	if t.needs != 0 {
		text = fmt.Sprintf("locks that state `%v`", t.needs)
	}
	if t.lacks != 0 {
		text += fmt.Sprintf(", but for `%v`", t.lacks)
	}
	if kinds != nil {
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	for _, c := range []struct {
		holds bool
		text  string
	}{
		{t.fault == clockJump, "backward, by at most a quarter of a lease: it ends by the clock of its server"},
		{t.durable, "servers write each grant to disk (`appendfsync: always`)"},
		{t.brief, fmt.Sprintf("on a node of `sentinel` or `cluster`: for at most %v; of `zookeeper`: for at most a "+
			"quarter of a session", takeover)},
		{t.polled, "option `poll` is at most 500 ms"},
		{t.early, "workload `waiters` or a plain loop, whose holders release in the first half of their lease"},
		{row.Least != nil, "until the end of the run, because a lock learns of each broken connection when it uses it"},
		{t.repeated, "no forced releases, no guarded resource"},
	} {
		if c.holds {
			text += "; " + c.text
		}
	}
	return text
}

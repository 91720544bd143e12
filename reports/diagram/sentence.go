package diagram

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Sentence is a frame in words: "n1 down · n2 master, key absent · client 3 believes it holds". The script of the page
// writes the same.
func (f *Frame) Sentence() string {
	var parts []string
	parts = append(parts, grouped(f.Nodes, func(c *Card) string { return c.predicate() })...)
	parts = append(parts, grouped(f.Sentinels, func(c *Card) string { return c.State })...)
	for _, l := range f.Links {
		parts = append(parts, l.Text)
	}
	parts = append(parts, f.Loose...)
	if f.why != "" {
		parts = append(parts, "records of the lock not sampled: "+f.why)
	}
	parts = append(parts, grouped(f.Clients, func(c *Card) string { return c.predicate() })...)
	if f.rest != "" {
		parts = append(parts, f.rest)
	}
	return strings.Join(parts, " · ")
}

// Text is a frame as a table of text: a line for each node, each client and each fault on a link.
func (f *Frame) Text() string {
	var b strings.Builder
	for _, c := range slices.Concat(f.Nodes, f.Clients) {
		text := cmp.Or(strings.TrimSpace(strings.TrimPrefix(c.title(), c.Name)), c.Record)
		fmt.Fprintf(&b, "%-10s %s\n", format.Line(c.Name), format.Line(text))
	}
	for _, c := range f.Sentinels {
		if c.State != "" {
			fmt.Fprintf(&b, "%-10s %s\n", c.Name, c.State)
		}
	}
	for _, l := range f.Links {
		b.WriteString(format.Line(l.Text) + "\n")
	}
	for _, text := range f.Loose {
		b.WriteString(format.Line(text) + "\n")
	}
	if f.why != "" {
		b.WriteString("records of the lock not sampled: " + f.why + "\n")
	}
	if f.rest != "" {
		b.WriteString(f.rest + "\n")
	}
	return b.String()
}

// predicate is the part of a sentence after the name of a card; "" if there is nothing to say.
func (c *Card) predicate() string {
	var parts []string
	for _, text := range []string{c.State, c.Role, c.Record} {
		if text != "" && !(c.Client >= 0 && text == idle) {
			parts = append(parts, text)
		}
	}
	text := strings.Join(parts, ", ")
	if c.State == "" && c.Faults != "" {
		text = strings.TrimSpace(text + " (" + c.Faults + ")")
	}
	return text
}

// grouped are clauses of names and their predicate; cards with the same predicate share one clause.
func grouped(cards []Card, predicate func(*Card) string) []string {
	var order []string
	names := map[string][]string{}
	for c := range evidence.Each(cards) {
		text := predicate(c)
		if text == "" {
			continue
		}
		if names[text] == nil {
			order = append(order, text)
		}
		names[text] = append(names[text], c.Name)
	}
	for i, text := range order {
		who := names[text]
		if len(who) > 1 {
			text = plural(text)
		}
		order[i] = evidence.List(who) + " " + text
	}
	return order
}

var permits = regexp.MustCompile(`holds, \d+ permits?`)

// plural is the predicate of several clients or nodes.
func plural(text string) string {
	text = permits.ReplaceAllString(text, "$0 each")
	return strings.NewReplacer("believes it holds", "believe they hold", "waits", "wait", "releases", "release",
		"does not reply", "do not reply").Replace(text)
}

package site

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/promise"
)

// catalog is a list of the program that becomes a page.
type catalog struct{ name, title, text string }

func catalogPages() []catalog {
	return []catalog{
		{"faults", "Faults", "The failures in a run, as `fault` of a step of a scenario."},
		{"locks", "Locks", "The locks that `--lock` and the key `lock` name, besides [libraries](../safe/index.md) and " +
			"programs of your own."},
		{"workloads", "Workloads", "The operations of the clients, as `workload.kind` of a scenario."},
		{"topologies", "Topologies", "The lock servers of a run, as `topology.kind` of a scenario."},
		{"backends", "Backends", "The ways to run servers, as `--backend`."},
		{"reports", "Report formats", "The formats of `chaos report --format`."},
	}
}

// generatedReference is the part of the index of the reference that lists the pages generated for the site.
func generatedReference() string {
	var b strings.Builder
	b.WriteString("\n## From the program\n\n| subject | page |\n| --- | --- |\n" +
		"| Promises of a lock | [promises](promises.md) |\n" +
		"| Properties, and the rules by which they are judged | [rules](rules.md) |\n")
	for _, c := range catalogPages() {
		fmt.Fprintf(&b, "| %s | [%s](%s.md) |\n", c.title, c.name, c.name)
	}
	return b.String()
}

// catalogs writes the pages of the catalogs.
func (o Options) catalogs() error {
	for _, c := range catalogPages() {
		text, err := o.output("list", c.name, "--json")
		if err != nil {
			return err
		}
		var rows []struct{ Name, Doc, More string }
		if err := json.Unmarshal(text, &rows); err != nil {
			return err
		}
		page := fmt.Sprintf("# %s\n\n%s `chaos list %s` prints them.\n\n| name | description | more |\n| --- | --- | --- |\n",
			c.title, c.text, c.name)
		for _, r := range rows {
			if c.name == "backends" {
				r.More = "" // about this machine
			}
			page += fmt.Sprintf("| `%s` | %s | %s |\n", r.Name, cell(r.Doc), cell(r.More))
		}
		if err := o.page("reference/"+c.name, page); err != nil {
			return err
		}
	}
	if err := o.page("reference/promises", promises()); err != nil {
		return err
	}
	return o.page("reference/rules", rules())
}

func promises() string {
	var b strings.Builder
	b.WriteString("# Promises\n\nA lock states its promises in the reply to `init` of the " +
		"[protocol](protocol.md#promises), in `can`. Guarantees that it does not state are not judged.\n\n" +
		"| promise | the lock … | operations |\n| --- | --- | --- |\n")
	for _, p := range promise.Catalog() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, strings.ReplaceAll(p.Meaning, "|", `\|`), strings.Join(p.Ops, ", "))
	}
	return b.String()
}

func rules() string {
	var b strings.Builder
	b.WriteString("# Rules\n\nA history is judged by these properties. [Checkers](../explanation/checkers.md) explains " +
		"them.\n")
	for _, s := range checker.Catalog() {
		fmt.Fprintf(&b, "\n## %s\n\nViolated if %s.\n\nSource: %s.\n\n", s.Name, cell(s.Doc), cell(s.Source))
		for _, rule := range s.Rules() {
			fmt.Fprintf(&b, "* %s\n", cell(rule))
		}
	}
	return b.String()
}

var subcommand = regexp.MustCompile(`(?m)^  ([a-z]+)\s{2,}\S`)

// commands adds the help of every command to the page of commands.
func (o Options) commands() error {
	const name = "reference/commands"
	text, err := os.ReadFile(filepath.Join(o.Pages, name+".md"))
	if err != nil {
		return err
	}
	page := string(text)
	var add func(words ...string) error
	add = func(words ...string) error {
		text, err := o.output(append([]string{"help"}, words...)...)
		if err != nil {
			return err
		}
		page += fmt.Sprintf("\n## %s\n\n```text\n%s```\n", strings.Join(append([]string{"chaos"}, words...), " "), text)
		_, list, _ := strings.Cut(string(text), "\nAvailable Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subcommand.FindAllStringSubmatch(list, -1) {
			if m[1] == "help" {
				continue
			}
			if err := add(append(words[:len(words):len(words)], m[1])...); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(); err != nil {
		return err
	}
	return o.page(name, page)
}

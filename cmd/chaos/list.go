package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/listing"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// item is a row of a catalog.
type item struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	More string `json:"more,omitempty"` // where it runs, its source

	Class  string `json:"class,omitempty"`  // of a fault: its kind, see docs/reference/history.md
	Object string `json:"object,omitempty"` // of a fault: the thing it acts on
}

// catalog is a list that chaos list can print. Scenarios have a form of their own: see listScenarios.
type catalog struct {
	name  string
	items func() ([]item, error) // nil: scenarios
}

func catalogs() []catalog {
	return []catalog{
		{"scenarios", nil}, {"locks", lockItems}, {"faults", faultItems},
		{"workloads", itemsOf(workloads.Catalog(), func(w workload.Spec) item {
			return item{Name: w.Name, Doc: w.Doc, More: w.Source}
		})},
		{"checkers", itemsOf(checker.Catalog(), func(c checker.Spec) item {
			return item{Name: string(c.Name), Doc: c.Doc, More: c.Source}
		})},
		{"topologies", itemsOf(cluster.Topologies(), func(t cluster.TopologySpec) item {
			return item{Name: t.Name, Doc: t.Doc}
		})},
		{"backends", backendItems},
		{"keys", itemsOf(scenarios.Keys(), keyItem)},
		{"reports", itemsOf(reports.Catalog(), func(f reports.Format) item { return item{Name: f.Name, Doc: f.Doc} })},
	}
}

// itemsOf lists the rows of a catalog of another package.
func itemsOf[Row any](rows []Row, toItem func(Row) item) func() ([]item, error) {
	return func() ([]item, error) {
		items := make([]item, len(rows))
		for i, row := range rows {
			items[i] = toItem(row)
		}
		return items, nil
	}
}

func newList(s streams) *cobra.Command {
	var asJSON bool
	var choice listing.Choice
	names := format.Texts(catalogs(), func(c catalog) string { return c.name })
	c := &cobra.Command{
		Use:   "list " + strings.Join(names, "|"),
		Short: "List scenarios, locks, faults, …",
		Long: `Lists what is built in: scenarios to run, locks to test, faults to inject, workloads of the clients,
checkers of a history, topologies and backends of the servers, keys of a scenario, and formats of reports.

Scenarios are stories, which happen in production, by chapter; with --all also probes, which exist to find
bugs of locks, by family. In a pattern, * is any text, and | separates several patterns.`,
		Example: `  chaos list scenarios
  chaos list scenarios --topology 'sentinel|replicated' --verdict unsafe
  chaos list faults --json`,
		ValidArgs: names,
		Args:      oneArg("one of: " + strings.Join(names, ", ")),
		RunE: func(_ *cobra.Command, args []string) error {
			i := slices.IndexFunc(catalogs(), func(c catalog) bool { return c.name == args[0] })
			switch {
			case i < 0:
				return known("unknown list", args[0], names)
			case catalogs()[i].items == nil:
				return listScenarios(s, choice, asJSON)
			case choice != (listing.Choice{}):
				return usage(fmt.Errorf("only the list of scenarios has --all, --lock, --topology, --fault and --verdict"))
			}
			return list(s, catalogs()[i], asJSON)
		},
	}
	choiceFlags(c, &choice)
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

func list(s streams, c catalog, asJSON bool) error {
	items, err := c.items()
	if err != nil {
		return err
	}
	if asJSON {
		return s.json(items)
	}
	w := s.table()
	for _, i := range items {
		fmt.Fprintf(w, "%s\t%s\n", i.Name, i.Doc)
		if i.More != "" {
			fmt.Fprintf(w, "\t  %s\n", i.More)
		}
	}
	return w.Flush()
}

func keyItem(k scenarios.Key) item {
	more := k.Type
	if k.Default != "" {
		more += "; default: " + k.Default
	}
	if k.Few() {
		more += "; one of: " + strings.Join(k.Values, ", ")
	}
	return item{Name: k.Path, Doc: k.Doc, More: more}
}

func lockItems() ([]item, error) {
	var items []item
	for _, row := range locks.Catalog() {
		items = append(items, lockItem(row.Name, row.Doc, row.Source, row.Topologies))
	}
	for _, name := range adapters.Names() {
		row, err := adapters.Lookup(name)
		if err != nil {
			return nil, err
		}
		items = append(items, lockItem(name, row.Doc, row.Source, row.Topologies))
	}
	own := "your own lock, in any language: a program that serves the client protocol on standard input and output"
	items = append(items, item{Name: client.ExecPrefix + "COMMAND", Doc: own, More: "see docs/reference/protocol.md"})
	return items, nil
}

func lockItem(name, doc, source string, topologies []string) item {
	return item{Name: name, Doc: doc, More: "on " + strings.Join(topologies, ", ") + "; " + source}
}

func faultItems() ([]item, error) {
	var items []item
	for _, row := range faults.Catalog() {
		more := "targets: " + strings.Join(format.Texts(row.Targets, targetText), ", ")
		if row.Topologies != nil {
			more += "; topologies: " + strings.Join(row.Topologies, ", ")
		}
		items = append(items, item{Name: row.Name, Doc: row.Doc, More: more, Class: row.Class, Object: row.Object})
	}
	return items, nil
}

// targetText is t with examples where it is a placeholder.
func targetText(t faults.Target) string {
	switch t {
	case faults.Node:
		return "a node (n1, n2, …)"
	case faults.Client:
		return "a client (client:0, …)"
	}
	return string(t)
}

func backendItems() ([]item, error) {
	var items []item
	for _, row := range backends() {
		more := "available on this machine"
		if why := row.Missing(scenarios.Scenario{Topology: cluster.Topology{Kind: cluster.Single}}); why != "" {
			more = "not available on this machine: " + why
		}
		items = append(items, item{Name: row.Name, Doc: row.Doc, More: more})
	}
	return items, nil
}

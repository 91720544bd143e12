package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/listing"
	"github.com/lockchaos/lockchaos/internal/nearest"
)

// choiceFlags are the flags of chaos list scenarios.
func choiceFlags(c *cobra.Command, o *listing.Choice) {
	f := c.Flags()
	f.BoolVar(&o.All, "all", false, "scenarios: also list probes, which exist to find bugs of locks")
	f.StringVar(&o.Lock, "lock", "", "scenarios: only those with a lock that matches `PATTERN`, such as redlock or zk-*")
	f.StringVar(&o.Topology, "topology", "", "scenarios: only those on servers that match `PATTERN`")
	f.StringVar(&o.Fault, "fault", "", "scenarios: only those with a fault that matches `PATTERN`")
	f.StringVar(&o.Verdict, "verdict", "", "scenarios: only those that expect `VERDICT`: "+strings.Join(verdicts(), ", "))
	_ = c.RegisterFlagCompletionFunc("lock", completeNames(lockNames))
	_ = c.RegisterFlagCompletionFunc("topology", completeNames(topologyNames))
	_ = c.RegisterFlagCompletionFunc("fault", completeNames(faultNames))
	_ = c.RegisterFlagCompletionFunc("verdict", completeNames(verdicts))
}

func topologyNames() []string {
	return format.Texts(cluster.Topologies(), func(t cluster.TopologySpec) string { return t.Name })
}

func faultNames() []string {
	return format.Texts(faults.Catalog(), func(f faults.Spec) string { return f.Name })
}

func verdicts() []string {
	return []string{string(checker.Safe), string(checker.Unsafe), string(checker.Inconclusive)}
}

// checkChoice refuses a name that does not exist, which would match nothing. A pattern may match nothing.
func checkChoice(o listing.Choice) error {
	for _, f := range []struct {
		flag, pattern string
		names         func() []string
	}{
		{"lock", o.Lock, lockNames}, {"topology", o.Topology, topologyNames},
		{"fault", o.Fault, faultNames}, {"verdict", o.Verdict, verdicts},
	} {
		if f.pattern == "" || strings.ContainsAny(f.pattern, "*?[]|\\,!:") || slices.Contains(f.names(), f.pattern) {
			continue
		}
		return fmt.Errorf("--%s: unknown %s %q%s", f.flag, f.flag, f.pattern, nearest.Hint(f.pattern, f.names()))
	}
	return nil
}

func listScenarios(s streams, o listing.Choice, asJSON bool) error {
	if err := checkChoice(o); err != nil {
		return usage(err)
	}
	items, err := o.Items()
	if err != nil {
		return usage(err)
	}
	if asJSON {
		return s.json(items)
	}
	if err := listing.Text(s.out, items); err != nil || o.All {
		return err
	}
	o.All = true
	all, err := o.Items()
	s.note("--all also lists %s, to find bugs of locks", format.Count(len(all)-len(items), "probe"))
	return err
}

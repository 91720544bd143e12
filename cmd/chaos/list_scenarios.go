package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/listing"
	"github.com/lockchaos/lockchaos/scenarios"
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
	_ = c.RegisterFlagCompletionFunc("topology", completeNames(func() []string {
		return format.Texts(cluster.Topologies(), func(t cluster.TopologySpec) string { return t.Name })
	}))
	_ = c.RegisterFlagCompletionFunc("fault", completeNames(func() []string {
		return format.Texts(faults.Catalog(), func(f faults.Spec) string { return f.Name })
	}))
	_ = c.RegisterFlagCompletionFunc("verdict", completeNames(verdicts))
}

func verdicts() []string {
	return []string{string(checker.Safe), string(checker.Unsafe), string(checker.Inconclusive)}
}

func listScenarios(s streams, o listing.Choice, asJSON bool) error {
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
	probes := len(scenarios.Names()) - len(scenarios.Stories())
	s.note("%s, which exist to find bugs of locks, are listed with --all", format.Count(probes, "probe"))
	return nil
}

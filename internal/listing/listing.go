// Package listing lists the named scenarios of the catalog that match a filter, as text and as JSON.
//
// Read [Choice] first.
package listing

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Item is a named scenario in a list.
type Item struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`              // story or probe
	Chapter    string   `json:"chapter,omitempty"` // of a story
	Family     string   `json:"family,omitempty"`  // of a probe
	Summary    string   `json:"summary"`
	Production string   `json:"production,omitempty"` // the equivalent of a story in production
	Source     string   `json:"source"`               // of the claim that is tested
	Lock       string   `json:"lock"`
	Others     []string `json:"others,omitempty"` // other locks, which some of the clients use
	Topology   string   `json:"topology"`
	Workload   string   `json:"workload"`
	Faults     []string `json:"faults,omitempty"`
	Verdict    string   `json:"verdict"`         // the expected one
	Class      string   `json:"class,omitempty"` // of the expected verdict; several are separated by " or "
	Twin       string   `json:"twin,omitempty"`  // the scenario that shows how to prevent the violation
	Duration   string   `json:"duration"`        // how long clients start new operations, such as 3.5s
}

func itemOf(e scenarios.Entry, s scenarios.Scenario) Item {
	verdict, class := s.Expect.Split()
	i := Item{
		Name: s.Name, Kind: string(e.Kind), Summary: s.Summary, Production: s.Production, Source: s.Source, Lock: s.Lock,
		Others: s.LockNames()[1:], Topology: s.Topology.Kind, Workload: s.Workload.Defaults().Kind, Faults: s.FaultNames(),
		Verdict: verdict, Class: class, Duration: s.Duration.String(),
	}
	if e.Kind == scenarios.Story {
		i.Chapter = e.Group
	} else {
		i.Family = e.Group
	}
	if s.Twin != nil {
		i.Twin = cmp.Or(s.Twin.Scenario, s.Name)
	}
	return i
}

// Choice chooses named scenarios. The zero value chooses all stories. A pattern is one of [suite.ParseFilter]; ""
// matches everything.
type Choice struct {
	All                            bool // probes too
	Lock, Topology, Fault, Verdict string
}

// filter is the choice as a filter of a suite.
func (c Choice) filter() (suite.Filter, error) {
	var terms []string
	for _, t := range []struct{ field, pattern string }{
		{"lock", c.Lock}, {"topology", c.Topology}, {"fault", c.Fault}, {"verdict", c.Verdict},
	} {
		switch {
		case strings.ContainsAny(t.pattern, ",!"):
			return suite.Filter{}, fmt.Errorf("%s: %q is not a pattern of names", t.field, t.pattern)
		case t.pattern != "":
			terms = append(terms, t.field+"="+t.pattern)
		}
	}
	return suite.ParseFilter(strings.Join(terms, ","))
}

// Items are the chosen scenarios. An error is about a pattern.
func (c Choice) Items() ([]Item, error) {
	filter, err := c.filter()
	if err != nil {
		return nil, err
	}
	entries := scenarios.Stories()
	if c.All {
		entries = scenarios.Entries()
	}
	items := []Item{}
	for _, e := range entries {
		s, err := scenarios.Load(e.Name)
		if err != nil {
			return nil, err
		}
		if filter.Matches(suite.Scenario{Arg: s.Name, Scenario: s}) {
			items = append(items, itemOf(e, s))
		}
	}
	return items, nil
}

// Text writes stories by chapter and probes by family, one line each.
func Text(out io.Writer, items []Item) error {
	titles, err := titles()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	last := ""
	for n, i := range items {
		if group := i.Kind + " " + cmp.Or(i.Chapter, i.Family); group != last {
			if n > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s\n", titles[group])
			last = group
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", i.Name, i.Verdict, i.Summary)
	}
	return w.Flush()
}

// titles are the headings of the groups of scenarios, by kind and name.
func titles() (map[string]string, error) {
	titles := map[string]string{}
	for _, c := range scenarios.Chapters() {
		titles[string(scenarios.Story)+" "+c.Name] = c.Title
	}
	families, err := scenarios.Families()
	for _, f := range families {
		titles[string(scenarios.Probe)+" "+f.Name] = "Probes, " + f.Name + ": " + f.About
	}
	return titles, err
}

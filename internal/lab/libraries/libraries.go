// Package libraries records the verdicts on the locks of other libraries: the results that were measured for the rows
// of adapters/*/expect.tsv, and the page that shows them.
package libraries

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Result is what the runs of one lock in one scenario ended with.
type Result struct {
	Lock       string         `json:"lock"` // LIBRARY/KIND
	Version    string         `json:"version"`
	Scenario   string         `json:"scenario"`
	Outcomes   map[string]int `json:"outcomes"`             // runs by [suite.LibraryOutcome]
	Properties map[string]int `json:"properties,omitempty"` // runs by violated property
	Sentence   string         `json:"sentence,omitempty"`   // of the first unsafe run
	Command    string         `json:"command,omitempty"`    // that repeats it
}

// Run runs a scenario with a lock of an adapter, on real servers. What the options lack is set here.
func Run(ctx context.Context, e adapters.Expectation, o runner.Options) (*runner.Outcome, error) {
	s, err := scenarios.Load(e.Scenario, scenarios.Sets([]string{"lock='" + e.Lock + "'", adapters.InitTimeout})...)
	if err != nil {
		return nil, err
	}
	o.Scenario, o.Backend = s, servers.Process().New(backend.Options{})
	return runner.Run(ctx, o)
}

// Runs is how many runs there were.
func (r Result) Runs() (n int) {
	for _, k := range r.Outcomes {
		n += k
	}
	return n
}

// Add adds a judged run.
func (r *Result) Add(j checker.Judgement, command string) {
	if r.Outcomes == nil {
		r.Outcomes = make(map[string]int)
	}
	if r.Properties == nil { // also in a stored result without a violation
		r.Properties = make(map[string]int)
	}
	r.Outcomes[suite.LibraryOutcome(j)]++
	for _, x := range j.Results {
		if x.Outcome == checker.Violated {
			r.Properties[string(x.Property)]++
		}
	}
	if j.Verdict == checker.Unsafe && r.Sentence == "" {
		r.Sentence, r.Command = j.Sentence, command
	}
}

// Load reads results; none if there is no such file.
func Load(file string) (all []Result, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// Save writes results, sorted.
func Save(file string, all []Result) error {
	slices.SortStableFunc(all, func(a, b Result) int {
		return strings.Compare(a.Lock+"\t"+a.Scenario, b.Lock+"\t"+b.Scenario)
	})
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

//go:embed head.md
var head string

// Document is docs/contributors/verdicts.md.
func Document(all []Result) (string, error) {
	var b strings.Builder
	b.WriteString(head)
	catalog, err := adapters.Catalog()
	if err != nil {
		return "", err
	}
	for _, a := range catalog {
		rows := slices.DeleteFunc(slices.Clone(all), func(r Result) bool {
			return !strings.HasPrefix(r.Lock, a.Library+"/") || r.Version != a.Version
		})
		if len(rows) == 0 {
			continue
		}
		expected, err := a.Expected()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## %s %s (%s)\n\n| lock | scenario | runs | violated | why |\n| --- | --- | --- | --- | --- |\n",
			a.Library, a.Version, a.Language)
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Lock, r.Scenario, counts(r.Outcomes), counts(r.Properties),
				expected.Why(r.Lock, r.Scenario))
		}
	}
	b.WriteString(convictions(all))
	return b.String(), nil
}

func counts(of map[string]int) string {
	return strings.Join(format.Texts(slices.Sorted(maps.Keys(of)), func(name string) string {
		return fmt.Sprintf("%d %s", of[name], name)
	}), ", ")
}

// convictions are the commands that repeat a run of each unsafe row.
func convictions(all []Result) string {
	var b strings.Builder
	b.WriteString("\n## Commands\n\nThe first unsafe run of each row.\n\n```\n")
	for _, r := range all {
		if r.Command != "" {
			fmt.Fprintf(&b, "# %s\n%s\n", format.Truncate(r.Sentence, 160), r.Command)
		}
	}
	b.WriteString("```\n")
	return b.String()
}

package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/workloads"
)

// complaints collects what is wrong with a scenario, each with its place in the text.
type complaints struct {
	file *ast.File
	list []complaint
}

type complaint struct {
	line, column int // 0: about what is not there
	err          *mistake
}

// maxComplaints is how many are told: nobody mends more at once.
const maxComplaints = 10

// at says what is wrong at a YAML path such as $.faults[0].fault. The place is
// shown with line, column and a caret; a path that is not in the text (a
// missing key) is named.
func (c *complaints) at(path, format string, args ...any) {
	if p, err := yaml.PathString(path); err == nil {
		if node, err := p.FilterFile(c.file); err == nil && node != nil {
			t := node.GetToken()
			m := complain(t, format, args...)
			m.path = path
			c.list = append(c.list, complaint{t.Position.Line, t.Position.Column, m})
			return
		}
	}
	c.list = append(c.list, complaint{err: &mistake{path: path, message: fmt.Sprintf(format, args...)}})
}

// full says that there is no use in looking for more.
func (c *complaints) full() bool { return len(c.list) > maxComplaints }

// join is all complaints in the order of the text.
func (c *complaints) join() error {
	slices.SortStableFunc(c.list, func(a, b complaint) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column),
			strings.Compare(a.err.Error(), b.err.Error()))
	})
	var errs []error
	for _, one := range c.list[:min(len(c.list), maxComplaints)] {
		errs = append(errs, one.err)
	}
	if c.full() {
		errs = append(errs, errors.New("scenario: and more; mend these first"))
	}
	return errors.Join(errs...)
}

// goodName is a name that can be a folder, on a command line too.
var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// check says everything that is wrong with s before anything is started.
func check(s Scenario, file *ast.File) error {
	c := &complaints{file: file}
	if s.Name == "" {
		c.at("$.name", "a scenario needs a name")
	} else if !goodName.MatchString(s.Name) {
		c.at("$.name", "the name %q becomes a folder: letters, digits, dots and dashes only, at most 100", s.Name)
	}
	if s.Duration < time.Millisecond || s.Duration > maxDuration {
		c.at("$.duration", "a scenario needs a duration from 1ms to %v, such as 10s", maxDuration)
	}
	checkTopology(c, s)
	checkLock(c, s)
	if err := s.Workload.Defaults().Validate(); err != nil {
		c.at("$.workload", "%v%s", err, hintWorkload(s.Workload.Kind))
	}
	if n := s.Workload.PerProcess; n < 0 || n > workloads.MaxClients {
		c.at("$.workload.per_process", "a process has 1 to %d clients, not %d", workloads.MaxClients, n)
	}
	for i := 0; i < len(s.Faults) && !c.full(); i++ {
		checkStep(c, fmt.Sprintf("$.faults[%d]", i), s, s.Faults[i])
	}
	if !c.full() {
		checkTogether(c, s)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Expect)) {
		checkExpect(c, name, s.Expect[name])
	}
	return c.join()
}

const maxDuration = workloads.MaxDuration

func topologies() (kinds []string) {
	for _, t := range cluster.Topologies() {
		kinds = append(kinds, t.Name)
	}
	return kinds
}

func checkTopology(c *complaints, s Scenario) {
	kinds := topologies()
	if !slices.Contains(kinds, s.Topology.Kind) {
		c.at("$.topology.kind", "no topology is called %q%s", s.Topology.Kind, nearest.Hint(s.Topology.Kind, kinds))
		return
	}
	if err := s.Topology.Defaults().Validate(); err != nil {
		c.at("$.topology", "%v", err)
	}
}

func checkLock(c *complaints, s Scenario) {
	row, err := client.Lookup(s.Lock)
	if err != nil {
		var names []string
		for _, row := range client.Catalog() {
			names = append(names, row.Name)
		}
		c.at("$.lock", "%v%s", err, nearest.Hint(s.Lock, names))
		return
	}
	if s.Workload.Kind == "semaphore" && !row.Permits && client.Command(s.Lock) == nil {
		c.at("$.lock", "lock %s has no permits, which the workload %s asks for; there are the locks %s", s.Lock,
			s.Workload.Kind, strings.Join(locksWithPermits(), ", "))
	}
	if known := slices.Contains(topologies(), s.Topology.Kind); known && !row.Runs(s.Topology.Kind) {
		c.at("$.lock", "lock %s does not run on topology %s, only on %s",
			s.Lock, s.Topology.Kind, strings.Join(row.Topologies, ", "))
	}
}

func locksWithPermits() (names []string) {
	for _, row := range client.Catalog() {
		if row.Permits {
			names = append(names, row.Name)
		}
	}
	return names
}

func hintWorkload(kind string) string {
	var names []string
	for _, row := range workloads.Catalog() {
		names = append(names, row.Name)
	}
	if kind == "" || slices.Contains(names, kind) {
		return ""
	}
	return nearest.Hint(kind, names)
}

func checkStep(c *complaints, path string, s Scenario, step Step) {
	alone := step
	alone.Random = nil
	switch {
	case step.Random != nil && alone != (Step{}):
		c.at(path, "a random step has nothing beside random")
	case step.Random != nil:
		checkRandom(c, path+".random", s, *step.Random)
		return
	case step.Fault == "":
		c.at(path, "a step needs a fault, or random")
		return
	default:
		checkFault(c, path+".fault", s, step.Fault, step.Target)
		checkAmount(c, path+".amount", step)
	}
	if step.When != "" && !slices.Contains(triggers, step.When) {
		c.at(path+".when", "no trigger is called %q%s", step.When, nearest.Hint(step.When, triggers))
	}
	if step.Delay != 0 && step.When == "" {
		c.at(path+".delay", "delay counts from a trigger, and this step has none: give it a when, or use after")
	}
	if step.After < 0 || step.For < 0 || step.Delay < 0 {
		c.at(path, "no duration may be negative")
	}
	if step.After >= s.Duration && s.Duration > 0 {
		c.at(path+".after", "this fault comes after %v, when the run of %v is over", step.After, s.Duration)
	}
}

func checkAmount(c *complaints, path string, step Step) {
	row, err := faults.Lookup(step.Fault)
	if err != nil {
		return // said elsewhere
	}
	if err := row.CheckAmount(step.Amount); err != nil {
		c.at(path, "%v", err)
	}
}

// maxDrawn bounds a plan: each fault drawn is a step that is listed, and shown.
const maxDrawn = 10_000

func checkRandom(c *complaints, path string, s Scenario, r Random) {
	until := r.Until
	if until == 0 {
		until = s.Duration
	}
	switch {
	case len(r.Of) == 0 || r.Every <= 0:
		c.at(path, "random needs of: [faults] and every: a time above zero")
	case r.For < 0 || r.Until < 0:
		c.at(path, "no duration may be negative")
	case s.Duration > 0 && until > s.Duration:
		c.at(path+".until", "until %v is after the run of %v is over", until, s.Duration)
	case s.Duration > 0 && r.Every > until:
		c.at(path+".every", "one fault every %v is none in %v", r.Every, until)
	case r.Most < 0:
		c.at(path+".most", "at most %d faults at once is fewer than none", r.Most)
	case until/r.Every > maxDrawn:
		c.at(path+".every", "one fault every %v makes %d, more than %d", r.Every, until/r.Every, maxDrawn)
	}
	for i, name := range r.Of {
		checkFault(c, fmt.Sprintf("%s.of[%d]", path, i), s, name, "")
	}
}

func checkFault(c *complaints, path string, s Scenario, name, target string) {
	row, err := faults.Lookup(name)
	if err != nil {
		var names []string
		for _, row := range faults.Catalog() {
			names = append(names, row.Name)
		}
		c.at(path, "%v%s", err, nearest.Hint(name, names))
		return
	}
	if why := row.WrongTopology(s.Topology.Kind); why != "" {
		c.at(path, "fault %s: %s, and this is topology %s", name, why, s.Topology.Kind)
		return
	}
	aim := strings.TrimSuffix(path, ".fault") + ".target"
	if target == "" {
		aim = path
	}
	if err := row.CheckTarget(target); err != nil {
		hint := ""
		if name := nearest.To(target, row.TargetWords()); name != "" && !strings.ContainsAny(name, "0123456789") {
			hint = fmt.Sprintf(" (did you mean %s?)", name)
		}
		c.at(aim, "%v%s", err, hint)
		return
	}
	if n := s.Workload.PerProcess; n > 1 && row.WholeProcess {
		c.at(path, "fault %s is one of a client's whole process, and %d clients share one: leave out workload.per_process",
			name, n)
		return
	}
	if why := row.MissingTarget(target, s.Topology.Defaults(), s.Workload.Defaults().Clients); why != "" {
		c.at(aim, "fault %s: %s", name, why)
	}
}

func checkExpect(c *complaints, name, outcome string) {
	allowed := map[string][]string{
		checker.ExpectVerdict: {string(checker.Safe), string(checker.Unsafe), string(checker.Inconclusive)},
		checker.ExpectClass:   {string(checker.BrokenPromise), string(checker.OutlivedLease)},
	}
	names := []string{checker.ExpectVerdict, checker.ExpectClass}
	outcomes := []string{
		string(checker.Holds), string(checker.Violated), string(checker.Undecided), string(checker.NotApplicable),
	}
	for _, row := range checker.Catalog() {
		names = append(names, string(row.Name))
		allowed[string(row.Name)] = outcomes
	}
	path := "$.expect." + name
	if words, ok := allowed[name]; !ok {
		c.at(path, "no property is called %q%s", name, nearest.Hint(name, names))
	} else if !slices.Contains(words, outcome) {
		c.at(path, "%s cannot be %q%s", name, outcome, nearest.Hint(outcome, words))
	}
}

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

	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/promise"

	"github.com/goccy/go-yaml/ast"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/internal/stats"
	"github.com/lockchaos/lockchaos/workloads"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// goodName is a name that can be a directory, on a command line too.
var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Check reports everything that is wrong with s, which was made by a program: its text has no lines to point at.
func (s Scenario) Check() error { return check(s, &ast.File{}) }

// check reports everything that is wrong with s before anything is started.
func check(s Scenario, file *ast.File) error {
	c := &mistakes{file: file}
	if s.Name == "" {
		c.add("$.name", "a scenario needs a name")
	} else if !goodName.MatchString(s.Name) {
		c.add("$.name", "%q cannot be a directory: use at most 100 letters, digits, dots and dashes", s.Name)
	}
	if s.Duration < time.Millisecond || s.Duration > workload.MaxDuration {
		c.add("$.duration", "a scenario needs a duration from 1ms to %v, such as 10s", workload.MaxDuration)
	}
	if s.InitTimeout < 0 || s.InitTimeout > workload.MaxDuration {
		c.add("$.init_timeout", "init_timeout is a duration up to %v, such as 30s", workload.MaxDuration)
	}
	checkTopology(c, s)
	checkLock(c, s)
	checkWorkload(c, s.Workload)
	for i := 0; i < len(s.Faults) && !c.full(); i++ {
		checkStep(c, fmt.Sprintf("$.faults[%d]", i), s, s.Faults[i])
	}
	if !c.full() {
		checkTogether(c, s)
	}
	checkExpect(c, s.Expect)
	for i, text := range s.Thresholds {
		_, err := stats.ParseThreshold(text)
		c.check(fmt.Sprintf("$.thresholds[%d]", i), err)
	}
	return c.join()
}

func topologies() []string {
	return format.Texts(cluster.Topologies(), func(r cluster.TopologySpec) string { return r.Name })
}

func checkTopology(c *mistakes, s Scenario) {
	kinds := topologies()
	if !slices.Contains(kinds, s.Topology.Kind) {
		c.add("$.topology.kind", "unknown topology %q%s", s.Topology.Kind, nearest.Hint(s.Topology.Kind, kinds))
		return
	}
	err := s.Topology.Defaults().Validate()
	path := "$.topology"
	if k, ok := errors.AsType[*cluster.KeyError](err); ok && k.Key != "" && c.at(path+"."+k.Key) != nil {
		path += "." + k.Key
	}
	c.check(path, err)
	checkOptions(c, s.Topology)
}

// checkOptions reports options that the servers would refuse.
func checkOptions(c *mistakes, t cluster.Topology) {
	options := t.Options
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if c.full() {
			return
		}
		path := "$.topology.options." + name
		if other, twice := seen[strings.ToLower(name)]; twice {
			c.add(path, "option %s is the same as option %s: leave one out", name, other)
		}
		seen[strings.ToLower(name)] = name
		if err := t.CheckOption(name, options[name]); err != nil {
			hint := ""
			if errors.Is(err, cluster.ErrUnknownOption) {
				hint = nearest.Or(name, t.OptionNames(), "")
			}
			c.add(path, "%v%s", err, hint)
		}
	}
}

func checkLock(c *mistakes, s Scenario) {
	checkOneLock(c, s, "$.", s.Lock, s.Options)
	rest := s.Workload.Defaults().Clients
	for i := 0; i < len(s.Locks) && !c.full(); i++ {
		g, path := s.Locks[i], fmt.Sprintf("$.locks[%d].", i)
		checkOneLock(c, s, path, g.Lock, g.Options)
		if rest -= max(1, g.Clients); g.Clients < 1 || rest < 1 {
			c.add(path+"clients", "at least one client uses this lock, and at least one of all %s uses lock %s",
				format.Count(s.Workload.Defaults().Clients, "client"), s.Lock)
		}
	}
	if len(s.Locks) > 0 && max(s.Workload.PerInstance, s.Workload.PerProcess) > 1 {
		c.add("$.locks", "clients with other locks share neither an object nor a process: leave out per_instance and "+
			"per_process")
	}
}

// checkOneLock reports mistakes in one lock of s; path is the path of its section, with a dot.
func checkOneLock(c *mistakes, s Scenario, path, name string, options map[string]string) {
	row, err := adapters.Lookup(name)
	if err != nil {
		names := slices.Concat(format.Texts(locks.Catalog(), func(r client.Spec) string { return r.Name }), adapters.Names())
		c.add(path+"lock", "%v%s", err, nearest.Or(name, names,
			" (see chaos list locks; a program of your own is exec:COMMAND)"))
		return
	}
	checkPromises(c, s, path, row)
	if why := s.unrecoverable(row.Can); why != "" {
		c.add(path+"lock", "lock %s: %s", name, why)
	}
	for _, option := range slices.Sorted(maps.Keys(options)) {
		if row.CheckOptions == nil {
			break
		}
		if err := row.CheckOptions(map[string]string{option: options[option]}); err != nil {
			c.add(path+"options."+option, "lock %s: %v", name, err)
		}
	}
	if slices.Contains(topologies(), s.Topology.Kind) && !row.Runs(s.Topology.Kind) {
		c.add(path+"lock", "lock %s does not run on topology %s, only on %s",
			name, s.Topology.Kind, strings.Join(row.Topologies, ", "))
	}
}

// checkPromises reports a lock, other than a program of the user, that cannot do the operations of the workload. A
// program states its promises when it starts, see [Scenario.NotFor].
func checkPromises(c *mistakes, s Scenario, path string, row client.Spec) {
	workload, err := workloads.Lookup(s.Workload.Defaults().Kind)
	if err != nil || strings.HasPrefix(row.Name, client.ExecPrefix) {
		return
	}
	needs := lacking(workload, s.Workload, row.Can)
	if needs == "" {
		return
	}
	var names []string
	for _, row := range locks.Catalog() {
		if lacking(workload, s.Workload, row.Can) == "" {
			names = append(names, row.Name)
		}
	}
	c.add(path+"lock", "workload %s needs %s (%s), not %s", workload.Name, needs, strings.Join(names, ", "), row.Name)
}

// lacking names the kind of lock that w needs with p, if a lock with these promises is not one; "" otherwise.
func lacking(w workload.Spec, p workload.Params, can promise.Set) string {
	if missing := w.Needs.Without(can); missing != 0 {
		return "a lock that promises " + missing.String()
	}
	if can.Has(promise.Latch) && !w.Needs.With(w.Uses).Has(promise.Latch) { // it has no operations for a latch
		return "a lock that is no latch"
	}
	if w.MissingForSequences != nil {
		if missing := w.MissingForSequences(p, can); missing != 0 {
			return fmt.Sprintf("a lock that promises %v, for sequences %q", missing, p.Sequences)
		}
	}
	return ""
}

// NotFor is the reason why s does not fit a lock with these promises; "": it fits.
func (s Scenario) NotFor(can promise.Set) string {
	if w, err := workloads.Lookup(s.Workload.Defaults().Kind); err == nil {
		if needs := lacking(w, s.Workload, can); needs != "" {
			return "workload " + w.Name + " needs " + needs
		}
	}
	return s.unrecoverable(can)
}

// unrecoverable is the reason why s cannot end safe with a lock with these promises: a client dies, and no lease ends
// its hold. It is empty if s can, or need not.
func (s Scenario) unrecoverable(can promise.Set) string {
	if !can.Has(promise.Unleased) || !s.Expect.Is(checker.Safe) || s.Expect.Is(checker.Unsafe) {
		return ""
	}
	for _, step := range s.Faults {
		for _, fault := range []string{clientCrash, clientRestart} {
			if step.Fault == fault || step.Random != nil && slices.Contains(step.Random.Of, fault) {
				return "a hold has no lease (promise unleased), and fault " + fault + " kills its holder: nothing would " +
					"free it, so the run could not be safe as expected; use a lock with leases, or expect verdict unsafe"
			}
		}
	}
	return ""
}

// The faults that kill a client, for good and until it is started again.
const clientCrash, clientRestart = "client-crash", "client-restart"

func checkWorkload(c *mistakes, p workload.Params) {
	if err := workloads.Validate(p.Defaults()); err != nil {
		hint := ""
		names := format.Texts(workloads.Catalog(), func(r workload.Spec) string { return r.Name })
		if p.Kind != "" && !slices.Contains(names, p.Kind) {
			hint = nearest.Hint(p.Kind, names)
		}
		c.add("$.workload", "%v%s", err, hint)
	}
	if n := p.PerProcess; n < 0 || n > workload.MaxClients {
		c.add("$.workload.per_process", "a process has 1 to %d clients, not %d", workload.MaxClients, n)
	}
	if n := p.PerInstance; n < 0 || n > 1 && p.PerProcess%n != 0 || n > max(1, p.PerProcess) {
		c.add("$.workload.per_instance", "clients that share a lock object are in one process: per_process (%d) must be a "+
			"multiple of per_instance (%d)", max(1, p.PerProcess), n)
	}
}

func checkStep(c *mistakes, path string, s Scenario, step Step) {
	others := step
	others.Random = nil
	switch {
	case step.Random != nil && others != (Step{}):
		c.add(path, "a step with random has no other keys")
	case step.Random != nil:
		checkRandom(c, path+".random", s, *step.Random)
		return
	case step.Fault == "":
		c.add(path, "a step needs fault or random")
		return
	default:
		checkFault(c, path+".fault", s, step.Fault, step.Target)
		if row, err := faults.Lookup(step.Fault); err == nil { // else reported by checkFault
			c.check(path+".amount", row.CheckAmount(step.Amount))
			c.check(path+".for", row.CheckFor(step.For))
			checkHits(c, path+".hits", row, step.Hits)
		}
	}
	if step.When != "" && !slices.Contains(triggers(), step.When) {
		c.add(path+".when", "unknown trigger %q%s", step.When, nearest.Hint(step.When, triggers()))
	}
	if why := s.Topology.LacksSamples(); step.When == Granted && why != "" {
		c.add(path+".when", "trigger %s: %s", Granted, why)
	}
	if step.Delay != 0 && step.When == "" {
		c.add(path+".delay", "delay counts from a trigger: add when, or use after")
	}
	if step.After < 0 || step.For < 0 || step.Delay < 0 {
		c.add(path, "durations must not be negative")
	}
	if step.After >= s.Duration && s.Duration > 0 {
		c.add(path+".after", "after %v is not before the end of the run (%v)", step.After, s.Duration)
	}
}

// checkHits checks the request that a step must hit, which is one of a client.
func checkHits(c *mistakes, path string, row faults.Spec, hits string) {
	requests := []string{history.Acquire, history.Release, history.Renew}
	switch {
	case hits == "":
	case !slices.Contains(requests, hits):
		c.add(path, "unknown request %q%s", hits, nearest.Hint(hits, requests))
	case !slices.Contains(row.Targets, faults.Client):
		c.add(path, "fault %s hits no request of a client", row.Name)
	}
}

// maxDrawn bounds the number of random steps in a plan.
const maxDrawn = 10_000

func checkRandom(c *mistakes, path string, s Scenario, r Random) {
	until := cmp.Or(r.Until, s.Duration)
	switch {
	case len(r.Of) == 0 || r.Every <= 0:
		c.add(path, "random needs of (a list of faults) and every (a positive duration)")
	case r.For < 0 || r.Until < 0:
		c.add(path, "durations must not be negative")
	case s.Duration > 0 && until > s.Duration:
		c.add(path+".until", "until %v is after the end of the run (%v)", until, s.Duration)
	case s.Duration > 0 && r.Every > until:
		c.add(path+".every", "every %v draws no fault in %v", r.Every, until)
	case r.Most < 0:
		c.add(path+".most", "most must not be negative")
	case until/r.Every > maxDrawn:
		c.add(path+".every", "every %v draws more than %s faults", r.Every, format.Number(maxDrawn))
	}
	for i, name := range r.Of {
		checkFault(c, fmt.Sprintf("%s.of[%d]", path, i), s, name, "")
		if row, err := faults.Lookup(name); err == nil { // else reported by checkFault
			c.check(path+".for", row.CheckFor(cmp.Or(r.For, r.Every/2)))
		}
	}
}

func checkFault(c *mistakes, path string, s Scenario, name, target string) {
	row, err := faults.Lookup(name)
	if err != nil {
		names := format.Texts(faults.Catalog(), func(r faults.Spec) string { return r.Name })
		c.add(path, "%v%s", err, nearest.Hint(name, names))
		return
	}
	if why := row.WrongServers(s.Topology); why != "" {
		c.add(path, "fault %s: %s, and this is topology %s", name, why, s.Topology.Kind)
		return
	}
	if why := row.WrongSettings(s.Topology); why != "" {
		c.add(path, "fault %s: %s", name, why)
		return
	}
	targetPath := strings.TrimSuffix(path, ".fault") + ".target"
	if target == "" {
		targetPath = path
	}
	if err := row.CheckTarget(target); err != nil {
		hint := ""
		if near := nearest.Or(target, row.TargetWords(), ""); !strings.ContainsAny(near, "0123456789") {
			hint = near
		}
		c.add(targetPath, "%v%s", err, hint)
		return
	}
	if n := s.Workload.PerProcess; n > 1 && row.WholeProcess {
		c.add(path, "fault %s acts on a whole process, which %s share: remove workload.per_process",
			name, format.Count(n, "client"))
		return
	}
	why := row.MissingTarget(target, s.Topology.Defaults(), s.Workload.Defaults().Clients)
	if why == "" && s.Topology.Given() {
		why = row.Foreign(target, s.Topology.Defaults(), false)
	}
	if why != "" {
		c.add(targetPath, "fault %s: %s", name, why)
	}
}

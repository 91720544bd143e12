// Package faults injects the failures of a run; its Go API is not a promise and may change. Each fault has a file of
// its own. A fault is injected, shows an observed effect, and is healed. It uses the abilities of the cluster and the
// clients' processes, and knows neither the workload nor the checkers.
//
// Read [Spec] and [Injection] first. What to break when is decided by the plan of a scenario, not here.
package faults

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Env has the servers, clients and gates that a fault works on, and its parameters.
type Env struct {
	Cluster cluster.Cluster
	Clients Clients
	Keys    []string      // names of the locks of the run
	Amount  time.Duration // see Spec.Amount; 0: the fault's default
	Rand    *rand.Rand    // of this injection alone; nil: nothing is drawn
	State   ClientState   // of the clients during the run
}

// Clients is the control of the lock users. Clients count from 0.
type Clients interface {
	Stop(client int) error     // returns when the client has stopped
	Continue(client int) error // no error if it was not stopped
	Crash(client int) error    // kills it
	// StartAgain starts a client that was killed; it uses the same names of owners, from the first one on.
	StartAgain(ctx context.Context, client int) error
}

// Injection is a fault in force. Its methods may be called from several goroutines.
type Injection interface {
	// Observe waits until the fault's effect has been observed and describes it. It returns an error if ctx ends first.
	Observe(ctx context.Context) (effect string, err error)
	// Heal undoes the fault and returns how. The second call does nothing and returns the same.
	Heal(ctx context.Context) (how string, err error)
}

// Spec is a row of the catalog.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string // the paper, article or issue that describes the fault
	// Class and Object are its kind, for the causes in reports and for rules: see history.FaultValue.
	Class, Object string
	// Verb is its effect on the target, as a predicate for sentences: "lost replies".
	Verb string
	// Targets are the kinds of target it takes; the first is the default.
	Targets []Target
	// HealLast: healed only when the workload has ended, because healing it under load would be another fault (a master
	// that restarts empty).
	HealLast bool
	// OneShot: healed as soon as its effect was observed, unless the step has a duration.
	OneShot bool
	// Affects has the words for its effects, see history.FaultValue; "": all. AffectsBack is the same with a negative
	// amount; "": Affects.
	Affects, AffectsBack string
	// Delays: its only effect is to delay traffic, by at most half more than its amount.
	Delays bool
	// Down: a node that it targets does not serve clients while it is in force.
	Down bool
	// WholeProcess: it affects a client's process, and so all other clients in that process.
	WholeProcess bool
	// Amount is the number that a step may set; nil: none.
	Amount *Amount
	// Least bounds the duration of a step; nil: it may be any.
	Least *Least
	// Topologies are the kinds that can have it; nil: all.
	Topologies []string
	// OnlyRedis names the object of the fault, such as keys, if only Redis servers have it; "": other servers have it
	// too.
	OnlyRedis string
	// NotOn are the kinds of topology that cannot have it, with the reason.
	NotOn map[string]string
	// Samples: it asks the servers who holds a lock.
	Samples bool
	// Settings are the server settings that it needs: the allowed values by name. The value "" is the server's default;
	// a new scenario gets the first value.
	Settings map[string][]string
	// Requires is the option with which servers have to be started.
	Requires cluster.Requirements
	// Lacks names the parts that this backend lacks for it; "" if none.
	Lacks func(c cluster.Cluster) string
	// Resources are the things that it controls while it is in force; nil: its target, against faults of the same name.
	Resources func(c cluster.Cluster, target string) []Resource
	// Inject breaks target, a resolved name such as "n2" or "client:3".
	Inject func(ctx context.Context, env Env, target string) (Injection, error)
}

// Amount is the one number that a fault may take from a step.
type Amount struct {
	Doc      string        // the measured quantity, for people
	Default  time.Duration // where a step sets none
	Min, Max time.Duration // inclusive; 0 is never allowed
}

// CheckAmount refuses an amount that the fault cannot have; 0 stands for the default.
func (s Spec) CheckAmount(amount time.Duration) error {
	a := s.Amount
	switch {
	case amount == 0:
		return nil
	case a == nil:
		return fmt.Errorf("fault %s takes no amount", s.Name)
	case amount < a.Min || amount > a.Max:
		return fmt.Errorf("fault %s: the amount (%s) must be between %v and %v, not %v", s.Name, a.Doc, a.Min, a.Max, amount)
	}
	return nil
}

// Least is the shortest duration of a fault whose effect stays when it is healed.
type Least struct {
	For time.Duration
	Why string
}

// CheckFor refuses a duration that is too short for the fault; 0 stands for one to the end of the run.
func (s Spec) CheckFor(duration time.Duration) error {
	if l := s.Least; l != nil && duration > 0 && duration < l.For {
		return fmt.Errorf("fault %s must last for %v or longer, not %v: %s", s.Name, l.For, duration, l.Why)
	}
	return nil
}

// shortDelay is a delay with which a correct lock still serves its waiters within the slack of the checkers (1 s): ten
// round trips take that long. Clients that ask a quorum at the same time may split its votes and have to try again,
// several times: with delays of 33 ms, 27 of 300 runs of a correct RedLock granted a free lock only after more than the
// slack, with 15 ms 1 of 400, and with 10 ms 0 of 400 (redlock-split-vote with lock redlock).
func shortDelay(topology string) time.Duration {
	if topology == cluster.Quorum {
		return 15 * time.Millisecond
	}
	return 50 * time.Millisecond
}

// AffectsBy are the words for the effects of s with an amount on a kind of topology; 0: the default amount.
func (s Spec) AffectsBy(amount time.Duration, topology string) string {
	if s.Delays && s.amount(Env{Amount: amount})*3/2 <= shortDelay(topology) {
		return history.AffectsDelays
	}
	if amount < 0 && s.AffectsBack != "" {
		return s.AffectsBack
	}
	return s.Affects
}

// amount is the step's, or the default of s.
func (s Spec) amount(env Env) time.Duration {
	if env.Amount != 0 || s.Amount == nil {
		return env.Amount
	}
	return s.Amount.Default
}

// WrongTopology returns why that kind of topology cannot have the fault; "" if it can.
func (s Spec) WrongTopology(kind string) string {
	switch why := s.NotOn[kind]; {
	case kind == cluster.None && !s.WholeProcess:
		return "it acts on servers or on connections to them"
	case s.OnlyRedis != "" && !(cluster.Topology{Kind: kind}).Redis():
		return "it acts on " + s.OnlyRedis + ", which only Redis servers have here"
	case why != "" || s.Topologies == nil || slices.Contains(s.Topologies, kind):
		return why
	}
	return "it needs topology " + strings.Join(s.Topologies, " or ")
}

// WrongServers returns why the servers of t cannot have the fault; "" if they can.
func (s Spec) WrongServers(t cluster.Topology) string {
	why := s.WrongTopology(t.Kind)
	if t.Kind == cluster.Postgres && t.Replicas == 0 && s.Topologies != nil {
		why = cmp.Or(why, "it needs a standby (topology.replicas: 1)")
	}
	if s.Samples {
		why = cmp.Or(why, t.LacksSamples())
	}
	if s.Requires.Clocks {
		why = cmp.Or(why, t.LacksClock())
	}
	if t.Given() {
		why = cmp.Or(why, s.Foreign("", t, false))
	}
	return why
}

// WrongSettings returns why servers with the settings of t cannot have the fault; "" if they can, or none is known.
func (s Spec) WrongSettings(t cluster.Topology) string {
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		allowed := s.Settings[name]
		if t.Kind == cluster.Command || slices.Contains(allowed, t.Options[name]) {
			continue
		}
		var values []string
		for _, value := range allowed {
			if value != "" {
				values = append(values, strconv.Quote(value))
			}
		}
		return fmt.Sprintf("it needs topology.options.%s: %s", name, strings.Join(values, " or "))
	}
	return ""
}

// Check returns, before anything is broken, why cluster c cannot have the fault.
func (s Spec) Check(c cluster.Cluster) error {
	if why := cmp.Or(s.WrongTopology(c.Topology().Kind), s.Lacks(c), s.WrongSettings(c.Topology())); why != "" {
		return fmt.Errorf("fault %s: %s", s.Name, why)
	}
	return nil
}

// lacks names the actions that a backend without ability A cannot do; "" if it has it.
func lacks[A any](what string) func(cluster.Cluster) string {
	return func(c cluster.Cluster) string {
		if _, ok := c.(A); ok {
			return ""
		}
		return "this backend cannot " + what
	}
}

func lacksKiller(c cluster.Cluster) string {
	return lacks[cluster.Killer]("kill and restart a server")(c)
}

func lacksAdmin(c cluster.Cluster) string {
	return lacks[cluster.Admin]("send commands to a server")(c)
}

func lacksLinks(c cluster.Cluster) string {
	return lacks[cluster.Links]("hold, delay or cut connections")(c)
}

func lacksNothing(cluster.Cluster) string { return "" }

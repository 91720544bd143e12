package evidence

import (
	"strings"

	"github.com/lockchaos/lockchaos/history"
)

// When says at or by which instant a fault took effect: a failover's is observed later.
func (f *Fault) When() Sentence {
	if f.Class == history.FaultDemotes {
		return Say("by %s", f.Took())
	}
	return Say("at %s", f.Took())
}

// Predicate is the effect of a fault on n targets, as a predicate: "was killed".
func (f *Fault) Predicate(n int) string {
	if f.Verb == "" {
		return plural("was hit by fault "+Quote(f.Name), n)
	}
	return plural(f.Verb, n)
}

// Clause is a fault as a sentence without a time: "n1 was killed", "n1 stopped replicating to n2".
func (f *Fault) Clause() string {
	if replica, master, link := strings.Cut(f.Target, ">"); link && f.ActsOn(history.ObjectReplication) {
		return TargetName(master) + " " + f.Predicate(1) + " to " + TargetName(replica)
	}
	return Subject(f.Target) + " " + f.Predicate(strings.Count(f.Target, "+")+1)
}

// Hit is the nodes that a fault hit, and its effect on them.
func (f *Fault) Hit(r *Run) string {
	nodes := f.Nodes(r)
	if len(nodes) == 0 {
		return f.Clause()
	}
	return List(nodes) + " " + f.Predicate(len(nodes))
}

// plural is a predicate of one subject with n subjects.
func plural(predicate string, n int) string {
	if n <= 1 {
		return predicate
	}
	predicate = strings.Replace(predicate, " its ", " their ", 1)
	if rest, passive := strings.CutPrefix(predicate, "was "); passive {
		return "were " + rest
	}
	return predicate
}

// Back is the predicate for nodes that were up again after a fault had ended them.
func (f *Fault) Back() string {
	if f.Empties() {
		return "restarted empty"
	}
	return "restarted"
}

// During is the effect of a fault on its target, with its interval: "was paused from
// 0.707 s to 2.507 s (`pause-client`)".
func (f *Fault) During() Sentence {
	if f.Heal < history.Infinity && f.HealEvent >= 0 {
		return Say("%s from %s to %s (%s)", f.Predicate(1), f.Took(), f.Healed(), f)
	}
	return Say("%s from %s (%s)", f.Predicate(1), f.Took(), f)
}

// ClockText is a node with a clock that was set forward, as the fault observed it.
func (f *Fault) ClockText() Sentence {
	switch by := f.Behind(); {
	case f.drifts():
		return Say("%s, whose clock gained %s every second from %s", f.Target, Quoted(f.amount(), f.Injected()),
			f.Injected())
	case by != "":
		return Say("%s, whose clock jumped %s ahead at %s, when it was corrected", f.Target, Quoted(by, f.Took()),
			f.Healed())
	}
	return Say("%s, whose clock jumped %s ahead at %s", f.Target, Quoted(f.ahead(), f.Took()), f.Took())
}

// TookEffect says where and when a fault took effect.
func (f *Fault) TookEffect() Sentence {
	return Say("%s took effect on %s at %s", f, Subject(f.Target), f.Took())
}

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// linkFault is a fault that is a rule for links: the action of the gates, and the counters that show it.
type linkFault struct {
	rule   func(env Env, s Spec) cluster.Rule
	effect func(since []cluster.Traffic) (string, bool) // by link
	healed string                                       // how it was undone, for people
}

// spec completes a row whose Resources are links.
func (l linkFault) spec(s Spec) Spec {
	s.Lacks = lacksLinks
	s.Affects = cmp.Or(s.Affects, history.AffectsTraffic)
	row := s
	s.Inject = func(ctx context.Context, env Env, target string) (Injection, error) {
		links := env.Cluster.(cluster.Links)
		held := row.Resources(env.Cluster, target)
		before, err := trafficOf(links, held)
		if err != nil {
			return nil, err
		}
		in := &injection{
			observe: func(ctx context.Context) (string, error) {
				return await(ctx, "an effect on any connection", func() (string, bool) {
					now, err := trafficOf(links, held)
					if err != nil {
						return "", false
					}
					return l.effect(difference(now, before))
				})
			},
			undo: func(context.Context) (string, error) { return l.healed, passAll(links, held) },
		}
		for _, r := range held {
			if err := links.SetRule(r.Link, r.Dir, l.rule(env, row)); err != nil {
				return in.started(ctx, fmt.Errorf("setting a rule for %s: %w", r, err))
			}
		}
		return in, nil
	}
	return s
}

// passAll removes the rules of all links, also when one of them cannot be removed.
func passAll(links cluster.Links, held []Resource) error {
	var errs []error
	for _, r := range held {
		if err := links.SetRule(r.Link, r.Dir, cluster.Rule{}); err != nil {
			errs = append(errs, fmt.Errorf("removing the rule for %s: %w", r, err))
		}
	}
	return errors.Join(errs...)
}

// trafficOf has the counters of the gates so far, by link.
func trafficOf(links cluster.Links, held []Resource) ([]cluster.Traffic, error) {
	all := make([]cluster.Traffic, len(held))
	for i, r := range held {
		t, err := links.Traffic(r.Link, r.Dir)
		if err != nil {
			return nil, fmt.Errorf("reading the counters of %s: %w", r, err)
		}
		all[i] = t
	}
	return all, nil
}

// difference is the traffic between two counts. Waiting is not a count but a level, and stays as it is now.
func difference(now, before []cluster.Traffic) []cluster.Traffic {
	for i, b := range before {
		now[i].Passed -= b.Passed
		now[i].Dropped -= b.Dropped
		now[i].Resets -= b.Resets
		now[i].Messages -= b.Messages
		now[i].Twice -= b.Twice
	}
	return now
}

// counted is an effect that shows as soon as the counter of any link is above zero.
func counted(counter func(cluster.Traffic) int64, noun, what string) func([]cluster.Traffic) (string, bool) {
	return func(since []cluster.Traffic) (string, bool) {
		var n int64
		for _, t := range since {
			n += counter(t)
		}
		return format.Count(n, noun) + " " + what, n > 0
	}
}

func waiting(t cluster.Traffic) int64 { return t.Waiting }

// always is the same rule for every link.
func always(r cluster.Rule) func(Env, Spec) cluster.Rule {
	return func(Env, Spec) cluster.Rule { return r }
}

// hold keeps traffic back; healing delivers it.
func hold() linkFault {
	return linkFault{
		rule:   always(cluster.Rule{Mode: cluster.Hold}),
		effect: counted(waiting, "byte", "held"),
		healed: "held traffic was delivered in order",
	}
}

// delay makes traffic late by the amount.
func delay() linkFault {
	return slow(func(env Env, s Spec) cluster.Rule { return cluster.Rule{Delay: s.amount(env)} })
}

// slow is a rule that makes traffic late.
func slow(rule func(Env, Spec) cluster.Rule) linkFault {
	return linkFault{rule: rule, effect: counted(waiting, "byte", "delayed"), healed: "traffic is no longer delayed"}
}

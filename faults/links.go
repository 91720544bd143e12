package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// overLinks is a fault that is rules for links: which ones, what the gates do,
// and what in their counts proves it.
type overLinks struct {
	rule  func(env Env, s Spec) cluster.Rule
	proof func(since cluster.Traffic) (string, bool)
	heal  string // how it was undone, for people
}

// spec completes a row whose Resources are the links.
func (o overLinks) spec(s Spec) Spec {
	s.Lacks = func(c cluster.Cluster) string { return can[cluster.Links](c, "hold, delay or cut connections") }
	row := s
	s.Inject = func(ctx context.Context, env Env, target string) (Injection, error) {
		in := &ruled{links: env.Cluster.(cluster.Links), held: row.Resources(env.Cluster, target), how: o}
		var err error
		if in.before, err = in.traffic(); err != nil {
			return nil, err
		}
		for _, g := range in.held {
			if err := in.links.SetRule(g.Link, g.Dir, o.rule(env, row)); err != nil {
				_, _ = in.Heal(ctx) // half of it is none: nobody would heal it
				return nil, fmt.Errorf("setting a rule for %s: %w", g, err)
			}
		}
		return in, nil
	}
	return s
}

// ruled is links under a rule.
type ruled struct {
	links  cluster.Links
	held   []Resource
	how    overLinks
	before cluster.Traffic
	once   sync.Once
	err    error
}

// traffic sums up what the gates of all links have done so far.
func (r *ruled) traffic() (sum cluster.Traffic, err error) {
	for _, g := range r.held {
		t, err := r.links.Traffic(g.Link, g.Dir)
		if err != nil {
			return sum, fmt.Errorf("counting on %s: %w", g, err)
		}
		sum.Add(t)
	}
	return sum, nil
}

// Bite waits until the gates have done to somebody's bytes what they should.
func (r *ruled) Bite(ctx context.Context) (string, error) {
	return await(ctx, "an effect on any connection", func() (string, bool) {
		now, err := r.traffic()
		if err != nil {
			return "", false
		}
		now.Passed -= r.before.Passed
		now.Dropped -= r.before.Dropped
		now.Resets -= r.before.Resets
		now.Messages -= r.before.Messages
		return r.how.proof(now)
	})
}

// Heal lets everything pass again.
func (r *ruled) Heal(context.Context) (string, error) {
	r.once.Do(func() {
		var errs []error
		for _, g := range r.held {
			if err := r.links.SetRule(g.Link, g.Dir, cluster.Rule{}); err != nil {
				errs = append(errs, fmt.Errorf("letting bytes pass on %s: %w", g, err))
			}
		}
		r.err = errors.Join(errs...)
	})
	return r.how.heal, r.err
}

// What gates do, and how it shows.
var (
	held = overLinks{
		rule: func(Env, Spec) cluster.Rule { return cluster.Rule{Mode: cluster.Hold} },
		proof: func(t cluster.Traffic) (string, bool) {
			return fmt.Sprintf("%d bytes are held back", t.Waiting), t.Waiting > 0
		},
		heal: "what was held back was delivered, in order",
	}
	delayed = overLinks{
		rule: func(env Env, s Spec) cluster.Rule { return cluster.Rule{Delay: jitter(env, s.amount(env))} },
		proof: func(t cluster.Traffic) (string, bool) {
			return fmt.Sprintf("%d bytes are under way for longer than before", t.Waiting), t.Waiting > 0
		},
		heal: "bytes pass at once again",
	}
	jittered = overLinks{
		rule: func(env Env, s Spec) cluster.Rule {
			return cluster.Rule{Jitter: s.amount(env), Seed: dice(env)}
		},
		proof: delayed.proof,
		heal:  delayed.heal,
	}
	narrowed = overLinks{
		rule: func(env Env, s Spec) cluster.Rule {
			return cluster.Rule{Rate: max(1, int64(1000*time.Second/s.amount(env)))}
		},
		proof: delayed.proof,
		heal:  delayed.heal,
	}
	muted = overLinks{
		rule: func(Env, Spec) cluster.Rule { return cluster.Rule{Mute: true} },
		proof: func(t cluster.Traffic) (string, bool) {
			return fmt.Sprintf("%d published messages were lost", t.Messages), t.Messages > 0
		},
		heal: "messages come again",
	}
	dropped = overLinks{
		rule: func(Env, Spec) cluster.Rule { return cluster.Rule{Mode: cluster.Drop} },
		proof: func(t cluster.Traffic) (string, bool) {
			return fmt.Sprintf("%d bytes were lost", t.Dropped), t.Dropped > 0
		},
		heal: "connections that had lost bytes were reset",
	}
	severed = overLinks{
		rule: func(Env, Spec) cluster.Rule { return cluster.Rule{Mode: cluster.Cut} },
		proof: func(t cluster.Traffic) (string, bool) {
			return fmt.Sprintf("%d connections were reset", t.Resets), t.Resets > 0
		},
		heal: "new connections are accepted again",
	}
)

// jitter is d, from a half less to a half more by chance: links differ.
func jitter(env Env, d time.Duration) time.Duration {
	if env.Rand == nil || d < 2 {
		return d
	}
	return d/2 + time.Duration(env.Rand.Int64N(int64(d)))
}

// dice is the seed of what is drawn for each packet.
func dice(env Env) uint64 {
	if env.Rand == nil {
		return 0
	}
	return env.Rand.Uint64()
}

// exact is delayed without chance.
func exact(o overLinks) overLinks {
	o.rule = func(env Env, s Spec) cluster.Rule { return cluster.Rule{Delay: s.amount(env)} }
	return o
}

// between is all bytes from one end to the other and back, whoever has dialled.
func between(a, b string) []Resource {
	return []Resource{
		{Link: cluster.Link{From: a, To: b}, Dir: cluster.Both},
		{Link: cluster.Link{From: b, To: a}, Dir: cluster.Both},
	}
}

// around is every link of a target of the words of [Spec.Resolve], in one
// direction (seen from the end that dials) or both.
func around(target string, dir cluster.Direction) (all []Resource) {
	if a, b, pair := cutPair(target); pair {
		all = append(all, Resource{Link: cluster.Link{From: a, To: b}, Dir: dir})
		if shape(a) == Node {
			all = append(all, Resource{Link: cluster.Link{From: b, To: a}, Dir: dir})
		}
		return all
	}
	if target == string(All) {
		return []Resource{{Link: cluster.Link{From: cluster.Any, To: cluster.Any}, Dir: dir}}
	}
	if shape(target) == Client {
		return []Resource{{Link: cluster.Link{From: target, To: cluster.Any}, Dir: dir}}
	}
	for _, node := range names(target) {
		all = append(all, Resource{Link: cluster.Link{From: cluster.Any, To: node}, Dir: dir},
			Resource{Link: cluster.Link{From: node, To: cluster.Any}, Dir: dir})
	}
	return all
}

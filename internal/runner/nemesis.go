package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/stalls"
	"github.com/lockchaos/lockchaos/scenarios"
)

// healTimeout bounds one healing: a server that does not come back must not prevent the report.
const healTimeout = 15 * time.Second

// nemesis executes a plan: it waits for instants and triggers, injects each fault, observes its effect, and heals it
// however the run ends.
type nemesis struct {
	env     faults.Env
	time    backend.Time
	record  *history.Recorder
	track   *tracker
	clock   *stalls.Clock // of the plan
	seed    uint64
	maxDown int // servers that faults may take down together; negative: any number

	mu     sync.Mutex
	nextID int
	active []*active
	failed atomic.Bool // a fault could not be healed
	jobs   sync.WaitGroup
	begun  chan struct{} // closed when the first steps of the plan that wait for nothing have been injected
}

// active is a fault that was injected.
type active struct {
	id        int
	name      string
	target    string
	healLast  bool // not before the workload has ended
	oneShot   bool // healed when its effect was observed
	drawn     bool
	hits      string   // the request that it must hit, in flight when its effect is observed; "": any
	nodesDown []string // do not serve clients while it is in force
	resources []faults.Resource
	injection faults.Injection
	once      sync.Once
	healed    bool // guarded by nemesis.mu
}

// run executes the plan until ctx ends, and returns when all but the healing is done; see heal. It records listed
// steps that were not injected, because a run without them has tested less than its scenario claims.
func (n *nemesis) run(ctx context.Context, plan scenarios.Plan) {
	n.jobs.Go(func() {
		ctx := n.time.Actor(ctx, "plan")
		begin := sync.OnceFunc(func() { close(n.begun) })
		defer begin()
		for i, step := range plan.Steps {
			if step.After > 0 || step.When != "" || names(step, faults.Holder) || names(step, faults.Waiter) {
				begin()
			}
			if why := n.execute(ctx, step); why != "" {
				n.note(step.Fault, n.id(), history.Missed, step.Target, fmt.Sprintf("step %d (%s): %s", i+1, step, why))
			}
		}
	})
	attempt := func(ctx context.Context, step scenarios.Step) {
		if why := n.execute(ctx, step); why != "" && ctx.Err() == nil {
			n.note(step.Fault, 0, history.Noted, step.Target, "fault not injected: "+why)
		}
	}
	for i, step := range plan.Optional {
		n.jobs.Go(func() { attempt(n.time.Actor(ctx, fmt.Sprintf("optional-%d", i+1)), step) })
	}
	n.jobs.Go(func() {
		ctx := n.time.Actor(ctx, "drawn")
		for _, step := range plan.Drawn {
			attempt(ctx, step)
		}
	})
	n.jobs.Wait()
}

// execute waits for step and injects it, or returns why it did not.
func (n *nemesis) execute(ctx context.Context, step scenarios.Step) (why string) {
	clients, why := n.wait(ctx, step)
	n.time.Turn(ctx)
	if why != "" {
		return why
	}
	return n.inject(ctx, step, clients)
}

// endedBefore is the reason of a step whose time did not come.
const endedBefore = "the run ended before it was due"

// wait returns when step is due, with the clients as its target sees them, or why it was not when ctx ended.
func (n *nemesis) wait(ctx context.Context, step scenarios.Step) (clients faults.ClientState, why string) {
	if !n.clock.Sleep(ctx, step.After-n.clock.Now()) {
		return nil, endedBefore
	}
	if step.When == "" {
		return n.track, ""
	}
	trigger := n.track.arm(step.When)
	defer n.track.disarm(trigger)
	select {
	case e := <-trigger.fired:
		if !n.clock.Sleep(ctx, step.Delay) {
			return nil, endedBefore
		}
		return triggeredBy{n.track, e}, ""
	case <-ctx.Done():
		return nil, fmt.Sprintf("its trigger, %s, never fired", step.When)
	}
}

func (n *nemesis) inject(ctx context.Context, step scenarios.Step, clients faults.ClientState) (why string) {
	row, err := faults.Lookup(step.Fault)
	if err != nil {
		return err.Error()
	}
	a, why := n.aim(ctx, row, step, clients)
	if why != "" {
		return why
	}
	target := a.target
	n.record.Note(history.Nemesis, row.Name, "", &history.Value{Fault: &history.FaultValue{
		ID: a.id, Phase: history.Injected, Target: target, Detail: describe(row, step),
		Affects: row.AffectsBy(step.Amount, n.env.Cluster.Topology().Kind),
		Class:   row.Class, Object: row.Object, Verb: row.Verb, Optional: step.Optional,
	}})
	if a.injection, err = row.Inject(ctx, n.faultEnv(a, step), target); err != nil {
		n.markHealed(a)
		n.note(row.Name, a.id, history.Healed, target, "injection failed: "+err.Error())
		return err.Error()
	}
	n.jobs.Go(func() { n.observe(n.time.Actor(ctx, fmt.Sprintf("effect-%d", a.id)), a) })
	if step.For > 0 {
		n.jobs.Go(func() {
			if n.clock.Sleep(ctx, step.For) {
				n.healOne(context.WithoutCancel(ctx), a)
			}
		})
	}
	return ""
}

// names reports whether a step's target, or the first of a pair, is the client in this role.
func names(step scenarios.Step, role faults.Target) bool {
	client, _, _ := strings.Cut(step.Target, ">")
	return client == string(role)
}

// aim finds the target of a step and claims it, or returns why it cannot. A waiter that was killed is one until its end
// is noticed: unless the step is a random one, aim waits for another waiter, for a limited time.
func (n *nemesis) aim(ctx context.Context, row faults.Spec, step scenarios.Step,
	clients faults.ClientState) (a *active, why string) {
	a = &active{
		id: n.id(), name: row.Name, healLast: row.HealLast, oneShot: row.OneShot && step.For == 0,
		drawn: step.Most > 0, hits: step.Hits,
	}
	for end := n.clock.Now() + resolveTimeout; ; {
		target, err := n.resolve(ctx, step.Target, clients)
		if err != nil {
			return nil, err.Error()
		}
		a.target, a.resources = target, row.ResourcesAt(n.env.Cluster, target)
		a.nodesDown, _ = row.NodesDown(target)
		why = n.claim(a, step.Most)
		if why == "" || a.drawn || !names(step, faults.Waiter) || n.clock.Now() > end || !n.clock.Sleep(ctx, resolveEvery) {
			return a, why
		}
	}
}

// A node may need some time to reply on a busy machine, and a new master to become one.
const (
	resolveTimeout = 3 * time.Second
	resolveEvery   = 10 * time.Millisecond
)

func (n *nemesis) resolve(ctx context.Context, word string, clients faults.ClientState) (target string, err error) {
	for end := n.clock.Now() + resolveTimeout; ; {
		target, err = faults.Resolve(ctx, n.env.Cluster, clients, word)
		if err == nil || n.clock.Now() > end || !n.clock.Sleep(ctx, resolveEvery) {
			return target, err
		}
	}
}

// faultEnv is the environment of one injection. Each has a random source of its own, so that its choices do not depend
// on the injections before it.
func (n *nemesis) faultEnv(a *active, step scenarios.Step) faults.Env {
	env := n.env
	env.Amount = step.Amount
	env.Rand = rand.New(rand.NewPCG(n.seed, uint64(a.id)+0xFA17))
	return env
}

// describe is the fault for the record: its effect, and its amount.
func describe(row faults.Spec, step scenarios.Step) string {
	switch {
	case row.Amount == nil:
		return row.Doc
	case step.Amount == 0:
		return fmt.Sprintf("%s Amount: %v.", row.Doc, row.Amount.Default)
	}
	return fmt.Sprintf("%s Amount: %v.", row.Doc, step.Amount)
}

// claim adds a to the faults in force, unless another one already controls one of its resources (they would heal each
// other), most random faults are in force (0: any number), or too many servers would be down.
func (n *nemesis) claim(a *active, most int) (why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	drawn, down := 0, slices.Clone(a.nodesDown)
	for _, other := range n.active {
		if other.healed {
			continue
		}
		down = append(down, other.nodesDown...)
		if other.drawn {
			drawn++
		}
		for _, r := range a.resources {
			if slices.ContainsFunc(other.resources, r.Overlaps) {
				return fmt.Sprintf("fault %d (%s) already controls %s", other.id, other.name, r)
			}
		}
	}
	if most > 0 && drawn >= most {
		return fmt.Sprintf("the limit of %s at once is reached", format.Count(most, "random fault"))
	}
	slices.Sort(down)
	down = slices.Compact(down)
	if n.maxDown >= 0 && len(a.nodesDown) > 0 && len(down) > n.maxDown {
		return fmt.Sprintf("%s would be down, and the scenario allows %d", format.Count(len(down), "server"), n.maxDown)
	}
	n.active = append(n.active, a)
	return ""
}

// markHealed frees the resources of the fault for other faults.
func (n *nemesis) markHealed(a *active) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a.healed = true
}

// observe waits for the effect of a and records it. If that was not the request that the step names, and the fault
// stays in force, observe waits for further effects, such as more lost bytes: a connection carries more than requests.
func (n *nemesis) observe(ctx context.Context, a *active) {
	n.time.Turn(ctx)
	effect, err := a.injection.Observe(ctx)
	n.time.Turn(ctx)
	if err != nil {
		n.note(a.name, a.id, history.Noted, a.target, "no effect observed: "+err.Error())
		return
	}
	why := n.missedRequest(a)
	if why != "" {
		n.note(a.name, a.id, history.Noted, a.target, effect+", but "+why)
	}
	for why != "" && !a.oneShot {
		if effect, err = n.observeMore(ctx, a, effect); err != nil {
			return
		}
		why = n.missedRequest(a)
	}
	if why == "" {
		n.note(a.name, a.id, history.TookEffect, a.target, effect)
	}
	if a.oneShot {
		n.healOne(context.WithoutCancel(ctx), a)
	}
}

// observeMore returns the effect of a as soon as it is another one than before, or an error when a was healed.
func (n *nemesis) observeMore(ctx context.Context, a *active, before string) (effect string, err error) {
	for effect = before; err == nil && effect == before; {
		if !n.clock.Sleep(ctx, resolveEvery) {
			return "", ctx.Err()
		}
		n.time.Turn(ctx)
		if n.isHealed(a) {
			return "", errHealed
		}
		effect, err = a.injection.Observe(ctx)
		n.time.Turn(ctx)
	}
	return effect, err
}

// errHealed means that a fault has no further effect.
var errHealed = errors.New("the fault was healed")

func (n *nemesis) isHealed(a *active) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.healed
}

// missedRequest says why a fault has not hit the request that its step names; "" if it has.
func (n *nemesis) missedRequest(a *active) string {
	from, _, _ := strings.Cut(a.target, ">")
	client, ok := cluster.ClientNumber(from)
	if a.hits == "" || !ok {
		return ""
	}
	switch f := n.track.inFlight(client); f {
	case a.hits:
		return ""
	case "":
		return fmt.Sprintf("%s had no request in flight, but the fault must hit its %s", from, a.hits)
	default:
		return fmt.Sprintf("the fault hit the %s of %s, but must hit its %s", f, from, a.hits)
	}
}

// heal heals all faults in force, except the ones with healLast if all is false. It is called after run, however the
// run ends.
func (n *nemesis) heal(ctx context.Context, all bool) {
	n.mu.Lock()
	list := slices.Clone(n.active)
	n.mu.Unlock()
	var wg sync.WaitGroup
	for _, a := range list {
		if a.injection != nil && (all || !a.healLast) {
			wg.Go(func() { n.healOne(ctx, a) })
		}
	}
	wg.Wait()
}

func (n *nemesis) healOne(ctx context.Context, a *active) {
	a.once.Do(func() {
		ctx, cancel := context.WithTimeout(n.time.Actor(ctx, fmt.Sprintf("heal-%d", a.id)), healTimeout)
		defer cancel()
		n.time.Turn(ctx)
		how, err := a.injection.Heal(ctx)
		phase := history.Healed
		if err != nil { // it stays in force
			phase = history.Noted
			how = fmt.Sprintf("healing: %v", err)
			if errors.Is(err, context.DeadlineExceeded) {
				how = fmt.Sprintf("not healed within %v: %v", healTimeout, err)
			}
		}
		n.time.Turn(ctx)
		n.note(a.name, a.id, phase, a.target, how)
		if err != nil {
			n.failed.Store(true)
		}
		n.markHealed(a)
	})
}

func (n *nemesis) id() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nextID++
	return n.nextID
}

func (n *nemesis) note(f string, id int, phase history.Phase, target, detail string) {
	v := &history.FaultValue{ID: id, Phase: phase, Target: target, Detail: detail}
	n.record.Note(history.Nemesis, f, "", &history.Value{Fault: v})
}

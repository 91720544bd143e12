package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// startClients starts all clients and sets them up, all at once except clients that share a lock object: the first of
// them is set up before the others, because the object uses the connections of the client that opens it, so that a
// fault on the link of that client hits all of them.
func (s *stage) startClients(ctx context.Context, env backend.Env) error {
	s.env, s.clients, s.pauses = env, make([]client.Client, env.Clients), make([]atomic.Uint32, env.Clients)
	can := make([]promise.Set, env.Clients)
	errs := make([]error, env.Clients)
	shared := max(1, s.run.params.PerInstance)
	var wg sync.WaitGroup
	for first := 0; first < env.Clients; first += shared {
		wg.Go(func() {
			can[first], errs[first] = s.startClient(ctx, env, first)
			for i := first + 1; i < min(first+shared, env.Clients) && errs[first] == nil; i++ {
				wg.Go(func() { can[i], errs[i] = s.startClient(ctx, env, i) })
			}
		})
	}
	wg.Wait()
	s.can = promise.Common(can...)
	names := s.run.Scenario.LockNames()
	if slices.ContainsFunc(names, func(name string) bool { return name != names[0] }) {
		s.can = s.can.Without(promise.Inspect) // each lock shows owners under names of its own
	}
	return firstError(errs)
}

// firstError is the first error with the number of further ones: most clients fail for the same reason, and there may
// be a thousand of them. If the scenario is not for this client, that error stands for all.
func firstError(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if alone := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, client.ErrAlone) }); alone >= 0 {
		return errs[alone]
	}
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w; %s failed as well", errs[0], format.Count(len(errs)-1, "other client"))
}

func (s *stage) startClient(ctx context.Context, env backend.Env, i int) (promise.Set, error) {
	var options map[string]string
	env.Lock, options = s.run.lockOf(i)
	c, err := s.run.Backend.Client(ctx, env, i)
	if err != nil {
		return 0, fmt.Errorf("starting client %d: %w", i, err)
	}
	s.setClient(i, c)
	return s.setUp(ctx, env, c, i, options, env.Seed+uint64(i))
}

// setUp sends init to client i.
func (s *stage) setUp(
	ctx context.Context, env backend.Env, c client.Client, i int, options map[string]string, seed uint64,
) (promise.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, env.InitTimeout)
	defer cancel()
	reply, err := c.Do(ctx, client.Request{Op: client.Init, Setup: &client.Setup{
		Lock: env.Lock.Name, Endpoints: s.cluster.Endpoints(i), Options: options, Seed: seed,
		Instance: s.run.params.Instance(i),
	}})
	if errors.Is(err, client.ErrAlone) {
		return 0, err
	}
	if err != nil {
		return 0, fmt.Errorf("setting up client %d: %w (%s%s)", i, err, ending(c, err), s.run.records.logs())
	}
	if reply.Type != "ok" {
		why := slices.DeleteFunc([]string{reply.Code, reply.Error}, func(s string) bool { return s == "" })
		return 0, fmt.Errorf("setting up client %d: %w: %s", i, client.ErrRefused,
			cmp.Or(strings.Join(why, ": "), "without a reason"))
	}
	return reply.Can, nil
}

// ending says how the process of a client that was not set up ended, and the last line of its standard error.
func ending(c client.Client, err error) (text string) {
	p, ok := c.(interface{ Ending() (string, string) })
	if !ok || errors.Is(err, client.ErrExited) { // then the error has it
		return ""
	}
	status, line := p.Ending()
	if errors.Is(err, client.ErrProtocol) && status == "signal: killed" {
		status = "still running" // until it was killed for its output
	}
	if status != "" {
		text = status + "; "
	}
	if line != "" {
		text += fmt.Sprintf("standard error ends with %q; ", format.Truncate(line, 300))
	}
	return text
}

// Stop implements [faults.Clients].
func (s *stage) Stop(i int) error {
	return act(s, i, "stopped", func(c client.Stopper) error {
		s.pauses[i].Add(1) // first: a process is never seen stopped without it
		err := c.Stop()
		if err != nil {
			s.pauses[i].Add(1)
		}
		return err
	})
}

// Continue implements [faults.Clients].
func (s *stage) Continue(i int) error {
	return act(s, i, "continued", func(c client.Stopper) error {
		defer s.pauses[i].Add(1)
		return c.Continue()
	})
}

// Crash implements [faults.Clients]. The session of the client records the crash.
func (s *stage) Crash(i int) error { return act(s, i, "killed", client.Crasher.Kill) }

// act does something to client i, which has to be a T for that.
func act[T any](s *stage, i int, what string, do func(T) error) error {
	c, err := clientAs[T](s, i, what)
	if err != nil {
		return err
	}
	return do(c)
}

// clientAs is client i with the ability T.
func clientAs[T any](s *stage, i int, what string) (T, error) {
	var none T
	if i < 0 || i >= len(s.clients) {
		return none, fmt.Errorf("client %d does not exist: the workload has %s", i, format.Count(len(s.clients), "client"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clients[i].(T)
	if !ok {
		return none, fmt.Errorf("client %d cannot be %s on this backend", i, what)
	}
	return c, nil
}

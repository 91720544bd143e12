package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// restartSeed is the difference between the seeds of a client and of its successor: a new process draws other numbers.
const restartSeed = 0xC11E0000

// StartAgain implements [faults.Clients]: it starts another process in place of client i, which was killed. The
// workload of the client begins again with it.
func (s *stage) StartAgain(ctx context.Context, i int) error {
	env, options := s.env, map[string]string(nil)
	env.Lock, options = s.run.lockOf(i)
	c, err := s.run.Backend.Client(ctx, env, i)
	if err != nil {
		return fmt.Errorf("starting client %d again: %w", i, err)
	}
	s.mu.Lock()
	s.gone = append(s.gone, s.clients[i])
	s.clients[i] = c
	again := uint64(len(s.gone))
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, env.InitTimeout)
	defer cancel()
	if _, err := s.setUp(ctx, env, c, i, options, env.Seed+uint64(i)+again*restartSeed); err != nil {
		return err
	}
	select {
	case s.restarts[i] <- c:
	default: // the one before has not begun yet
	}
	return nil
}

// restarted waits until client i, which has exited, was started again, and changes the environment of its workload to
// the new process's. It returns false if the workload is over.
func (s *stage) restarted(ctx context.Context, i int, env *workload.Env) bool {
	if env.Session.Alive() || !s.run.plan.Restarts() {
		return false
	}
	select {
	case <-s.stop: // also if the client was started again
		return false
	default:
	}
	select {
	case c := <-s.restarts[i]:
		s.run.Backend.Turn(ctx)
		env.Session = env.Session.Restarted(s.authenticated(c, i))
	case <-s.stop:
		return false
	case <-ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[i] = env.Session
	s.listeners.Go(env.Session.Listen)
	return true
}

// setClient notes client i.
func (s *stage) setClient(i int, c client.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[i] = c
}

// currentSessions are the sessions of all clients, for restarted ones the latest.
func (s *stage) currentSessions() []*session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

// closeClients closes all clients, in whatever state they are.
func (s *stage) closeClients(ctx context.Context) {
	for _, each := range s.currentSessions() {
		each.Closing()
	}
	s.mu.Lock()
	all := slices.Concat(s.gone, s.clients)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range all {
		if c == nil {
			continue
		}
		wg.Go(func() {
			if stopped, ok := c.(client.Stopper); ok {
				_ = stopped.Continue()
			}
			if c.Close(ctx) == nil {
				return
			}
			if left, ok := c.(client.Crasher); ok { // its log says why; a process has been killed by now
				_ = left.Kill()
			}
		})
	}
	wg.Wait()
}

var _ faults.Clients = (*stage)(nil)

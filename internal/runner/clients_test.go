package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// slowSetups is a backend, a cluster and all clients: the lower the number of a client, the longer its setup takes.
type slowSetups struct {
	backend.Backend
	cluster.Cluster
	mu    sync.Mutex
	ready []int // clients, as they were set up
}

func (s *slowSetups) Endpoints(int) topology.Endpoints { return topology.Endpoints{} }

func (s *slowSetups) Client(_ context.Context, e backend.Env, i int) (client.Client, error) {
	return &slowSetup{all: s, number: i, takes: time.Second << (e.Clients - i)}, nil
}

type slowSetup struct {
	client.Client
	all    *slowSetups
	number int
	takes  time.Duration
}

func (c *slowSetup) Do(context.Context, client.Request) (client.Reply, error) {
	time.Sleep(c.takes) //nolint:forbidigo // virtual time
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.ready = append(c.all.ready, c.number)
	return client.Reply{Type: "ok"}, nil
}

// TestFirstOpensTheSharedLock: of clients that share a lock object, the first is set up before the others; the rest do
// not wait for each other.
func TestFirstOpensTheSharedLock(t *testing.T) {
	for _, test := range []struct {
		shared int
		want   []int
	}{
		{0, []int{4, 3, 2, 1, 0}},
		{2, []int{4, 2, 3, 0, 1}}, // ready after 2, 8, 8+4, 32 and 32+16 s
		{9, []int{0, 4, 3, 2, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &slowSetups{}
			s := &stage{cluster: b, run: &run{
				Options: Options{Backend: b}, params: workload.Params{PerInstance: test.shared}, locks: make([]client.Spec, 1),
			}}
			if err := s.startClients(t.Context(), backend.Env{Clients: 5, InitTimeout: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b.ready, test.want) {
				t.Errorf("per_instance %d: set up in the order %v, want %v", test.shared, b.ready, test.want)
			}
		})
	}
}

// A lock whose client renews a hold by itself is safe in stuck-holder, where the hold outlasts the lease: its client
// reports the renewals.
func TestRenewalsAreReported(t *testing.T) {
	for _, lock := range []string{"multi", "multi-kinds", "multi-permits", "permits", "fair-permits"} {
		t.Run(lock, func(t *testing.T) {
			out, _ := simulate(t, load(t, "stuck-holder", "lock="+lock), 3, 0)
			if j := out.Judgement; j.Verdict != checker.Safe {
				t.Errorf("%s: %s", j.Verdict, j.Sentence)
			}
		})
	}
}

// TestFirstError: the errors of a thousand clients are one message.
func TestFirstError(t *testing.T) {
	first := errors.New("no such program")
	if err := firstError([]error{nil, nil}); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := firstError([]error{nil, first, errors.New("other"), errors.New("other")}); !errors.Is(err, first) ||
		!strings.HasSuffix(err.Error(), "; 2 other clients failed as well") {
		t.Errorf("error %v", err)
	}
	if err := firstError([]error{first, client.ErrAlone, client.ErrAlone}); !errors.Is(err, client.ErrAlone) ||
		err.Error() != client.ErrAlone.Error() {
		t.Errorf("a scenario that is not for the client: %v", err)
	}
}

package reshard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/topology"
)

// fake is a cluster of three masters, of which n1 has all slots, and one that is down.
type fake struct {
	cluster.Cluster
	epochs map[string][]int64 // by node: its replies to CLUSTER INFO, of which the last is repeated
	did    []string
}

func (f *fake) Nodes() []cluster.Node {
	return []cluster.Node{{Name: "n1", Addr: "127.0.0.1:1"}, {Name: "n2", Addr: "127.0.0.1:2"}, {Name: "n3"}, {Name: "n4"}}
}

func (*fake) Endpoints(int) topology.Endpoints { return topology.Endpoints{} }

func (f *fake) Do(_ context.Context, node string, args ...any) (any, error) {
	command := fmt.Sprintln(args...)
	switch {
	case strings.Contains(command, "MYID"):
		return "id-" + node, nil
	case strings.Contains(command, "SLOTS"):
		return []any{[]any{int64(0), int64(16383), []any{"127.0.0.1", int64(1), "id-n1"}}}, nil
	case strings.Contains(command, "KEYSLOT"):
		return int64(7), nil
	case strings.Contains(command, "GETKEYSINSLOT"):
		return []any{}, nil
	case strings.Contains(command, "INFO"):
		list := f.epochs[node]
		if len(list) == 0 {
			return nil, errors.New("connection refused")
		}
		if len(list) > 1 {
			f.epochs[node] = list[1:]
		}
		f.did = append(f.did, fmt.Sprintf("%s knows epoch %d", node, list[0]))
		return fmt.Sprintf("cluster_state:ok\r\ncluster_current_epoch:%d\r\ncluster_my_epoch:1\r\n", list[0]), nil
	}
	f.did = append(f.did, node+" "+strings.TrimSpace(command))
	return "OK", nil
}

// finish migrates a slot from n1 to n2 and returns what was done at the end.
func finish(t *testing.T, f *fake) []string {
	t.Helper()
	m, err := New(t.Context(), f, "n2", []string{"orders"})
	if err == nil {
		err = m.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	f.did = nil
	if _, err := m.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f.did
}

// TestLearnsEpoch: the slot is assigned when its new master knows the greatest epoch. A node that is down has none.
func TestLearnsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		did := finish(t, &fake{epochs: map[string][]int64{"n1": {6}, "n2": {5, 5, 6}, "n3": {4}}})
		assigned := slices.Index(did, "n2 CLUSTER SETSLOT 7 NODE id-n2")
		if known := slices.Index(did, "n2 knows epoch 6"); known < 0 || assigned < known {
			t.Errorf("done: %q", did)
		}
	})
}

// TestEpochNotLearned: a target that never hears of the greatest epoch gets the slot all the same, after a while.
func TestEpochNotLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		did := finish(t, &fake{epochs: map[string][]int64{"n1": {6}, "n2": {5}, "n3": {4}}})
		if !slices.Contains(did, "n2 CLUSTER SETSLOT 7 NODE id-n2") || !slices.Contains(did, "n1 CLUSTER SETSLOT 7 NODE id-n2") {
			t.Errorf("done: %q", did)
		}
	})
}

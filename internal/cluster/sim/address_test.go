package sim_test

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// move moves the master's address.
func (n *recorder) move(how cluster.Move) {
	n.t.Helper()
	from, to, err := n.c.(cluster.Address).MoveAddress(n.ctx, how)
	n.ok(err)
	n.log = append(n.log, "moved from "+from+" to "+to)
}

// settle completes the move.
func (n *recorder) settle() {
	n.t.Helper()
	n.ok(n.c.(cluster.Address).SettleAddress(n.ctx))
}

// moves are the scripts in which the master's address moves.
func moves() map[string]script {
	return map[string]script{
		"the address moves away from a connection": {
			cluster.Topology{Kind: cluster.Replicated},
			func(n *recorder) {
				open := n.connect(0)
				defer func() { _ = open.Close() }()
				n.try(open, "a")
				n.look("a")
				n.move(cluster.Move{})
				n.role("n2", "master")
				n.try(open, "b")
				n.write(0, "c")
				n.look("a", "b", "c")
				n.settle()
				n.role("n1", "slave")
				n.try(open, "d") // refused
				n.try(open, "e") // by another connection
				n.look("a", "b", "c", "d", "e")
			},
		},
		"the address moves, and one client does not notice": {
			cluster.Topology{Kind: cluster.Replicated},
			func(n *recorder) {
				n.write(0, "a")
				n.look("a")
				n.move(cluster.Move{Stale: "client:0"})
				n.role("n2", "master")
				n.write(0, "b") // at the old master
				n.look("a", "b")
				n.settle()
				n.role("n1", "slave")
				n.write(0, "c")
				n.look("a", "b", "c")
			},
		},
		"the address moves away from a demoted master, and back": {
			cluster.Topology{Kind: cluster.Replicated, Replicas: 1},
			func(n *recorder) {
				open := n.connect(0)
				defer func() { _ = open.Close() }()
				n.try(open, "a")
				n.look("a")
				n.move(cluster.Move{Demote: true})
				n.role("n1", "slave")
				n.try(open, "b") // refused
				n.try(open, "c") // by another connection
				n.look("a", "b", "c")
				n.move(cluster.Move{Demote: true})
				n.role("n2", "slave")
				n.try(open, "d")
				n.write(0, "e")
				n.look("a", "b", "c", "d", "e")
			},
		},
	}
}

// TestOnlyAReplicatedMasterHasAnAddressThatMoves also fails if a move without a replica changes anything.
func TestOnlyAReplicatedMasterHasAnAddressThatMoves(t *testing.T) {
	simulate(t, single(), func(w *world) {
		if _, _, err := w.MoveAddress(w.ctx, cluster.Move{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("moving the address of a single master = %v, want ErrUnsupported", err)
		}
		w.ok(w.SettleAddress(w.ctx)) // nothing has moved
	})
	cfg := single()
	cfg.Topology.Kind = cluster.Replicated
	simulate(t, cfg, func(w *world) {
		w.ok(w.Kill(w.ctx, "n2"))
		w.ok(w.Kill(w.ctx, "n3"))
		if _, _, err := w.MoveAddress(w.ctx, cluster.Move{Demote: true}); !errors.Is(err, cluster.ErrDown) {
			t.Errorf("moving the address without a replica = %v, want ErrDown", err)
		}
		if role := w.Sample(w.ctx, "n1", nil).Role; role != "master" {
			t.Errorf("n1 is %s", role)
		}
	})
}

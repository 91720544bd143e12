package etcdreader

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/lockchaos/lockchaos/history"
)

// TestEtcdQueueState: the keys of a lock, oldest first, determine who holds it: a writer at the head, or all readers
// before the first writer, or as many requests for permits as fit.
func TestEtcdQueueState(t *testing.T) {
	key := func(name, owner string, lease, revision int64) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{
			Key: []byte("/locks/orders/" + name), Value: []byte(owner), Lease: lease, CreateRevision: revision,
		}
	}
	for name, test := range map[string]struct {
		kvs  []*mvccpb.KeyValue
		want history.KeyState
	}{
		"mutex": {
			[]*mvccpb.KeyValue{key("Z-lock", "own-0", 7, 12), key("A-lock", "own-1", 8, 13)},
			history.KeyState{Owner: "own-0", TTL: -1, Session: "0x7", Token: 12},
		},
		"readers": {
			[]*mvccpb.KeyValue{
				key("Z-read", "own-1", 7, 12), key("Y-read", "own-0", 8, 13), key("X-lock", "own-2", 9, 14),
				key("A-read", "own-3", 10, 15),
			},
			history.KeyState{
				Owner: "own-0", Owners: []string{"own-0", "own-1"}, Mode: "read", TTL: -1, Session: "0x7", Token: 12,
			},
		},
		"writer": {
			[]*mvccpb.KeyValue{key("Z-lock", "own-0", 7, 12), key("A-read", "own-1", 8, 13)},
			history.KeyState{Owner: "own-0", Mode: "write", TTL: -1, Session: "0x7", Token: 12},
		},
		"permits": {
			[]*mvccpb.KeyValue{
				key("Z-2of4", "own-0", 7, 12), key("Y-1of4", "own-1", 8, 13), key("X-2of4", "own-2", 9, 14),
				key("A-1of4", "own-3", 10, 15),
			},
			history.KeyState{Permits: 3, Limit: 4, TTL: -1},
		},
		"the key of etcd's own mutex": {
			[]*mvccpb.KeyValue{key("694d5765fc71500b", "", 7, 12), key("094d5765fc71500b", "", 8, 13)},
			history.KeyState{TTL: -1, Session: "0x7", Token: 12},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, queueState("orders", test.kvs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

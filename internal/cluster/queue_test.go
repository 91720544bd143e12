package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

// TestQueueState: who holds a lock follows from the names of its nodes.
func TestQueueState(t *testing.T) {
	for name, test := range map[string]struct {
		names, holders string
		want           history.KeyState
	}{
		"mutex":   {"b-lock-0000000002 a-lock-0000000001", "a-lock-0000000001", history.KeyState{}},
		"wrapped": {"b-lock--2147483648 a-lock-2147483647", "a-lock-2147483647", history.KeyState{}},
		"readers": {
			"c-lock-0000000003 b-read-0000000002 d-read-0000000004 a-read-0000000001",
			"a-read-0000000001 b-read-0000000002", history.KeyState{Mode: "read"},
		},
		"writer": {"b-read-0000000002 a-lock-0000000001", "a-lock-0000000001", history.KeyState{Mode: "write"}},
		"permits": {
			"a-2of4-0000000001 b-1of4-0000000002 c-2of4-0000000003 d-1of4-0000000004", "",
			history.KeyState{Permits: 3, Limit: 4},
		},
		"go-zookeeper's": {"_c_0a1b-lock-0000000007", "_c_0a1b-lock-0000000007", history.KeyState{}},
		"nobody":         {"", "", history.KeyState{}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.TTL = -1
			state, holders := QueueState(strings.Fields(test.names))
			if diff := cmp.Diff(test.want, state); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := strings.Join(holders, " "); got != test.holders {
				t.Errorf("holders %q, want %q", got, test.holders)
			}
		})
	}
}

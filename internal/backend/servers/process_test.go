package servers

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestFileLimit(t *testing.T) {
	for _, test := range []struct {
		limit   uint64
		kind    string
		clients int
		enough  bool
	}{
		{0, cluster.Quorum, 1000, true},
		{1024, cluster.Sentinel, 5, true},
		{64, cluster.Single, 5, false},
		{1024, cluster.Sentinel, 200, false},
		{20_000, cluster.Single, 1000, true},
		{20_000, cluster.Quorum, 1000, false},
	} {
		err := checkFileLimit(test.limit, cluster.Topology{Kind: test.kind, Masters: 5}, test.clients)
		if (err == nil) != test.enough {
			t.Errorf("%d files for %d clients: %v", test.limit, test.clients, err)
		}
		if err != nil && (!errors.Is(err, cluster.ErrEnvironment) || !strings.Contains(err.Error(), "ulimit -n")) {
			t.Errorf("no advice: %v", err)
		}
	}
}

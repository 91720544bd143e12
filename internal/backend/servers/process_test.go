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

func TestMemoryLimit(t *testing.T) {
	for _, test := range []struct {
		limit               uint64
		clients, processors int
		enough              bool
	}{
		{0, 1000, 2, true},
		{2_500_000 << 10, 10, 2, false},
		{2_800_000 << 10, 10, 2, true},
		{2_800_000 << 10, 100, 2, false},
		{3_600_000 << 10, 100, 2, true},
		{3_600_000 << 10, 100, 64, false},
	} {
		err := checkMemoryLimit(test.limit, test.clients, test.processors)
		if (err == nil) != test.enough {
			t.Errorf("%d bytes for %d clients, %d processors: %v", test.limit, test.clients, test.processors, err)
		}
		if err != nil && (!errors.Is(err, cluster.ErrEnvironment) || !strings.Contains(err.Error(), "(ulimit -v ")) {
			t.Errorf("no advice: %v", err)
		}
	}
}

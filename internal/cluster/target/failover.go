package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Failover is a [Target] whose owner has allowed failovers: SENTINEL FAILOVER, and CLUSTER FAILOVER with the master's
// consent. It can send no other command.
type Failover struct{ *Target }

var (
	_ cluster.Promoter = Failover{}
	_ cluster.Admin    = Failover{}
)

// Promote requests a failover from each Sentinel in turn until one accepts.
func (f Failover) Promote(ctx context.Context) error {
	if f.topology.Kind != cluster.Sentinel {
		return fmt.Errorf("promoting a replica in topology %s: %w", f.topology.Kind, errors.ErrUnsupported)
	}
	var errs []error
	for _, s := range f.sentinels {
		_, err := s.one(ctx, "SENTINEL", "FAILOVER", f.address.Master)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("requesting a failover: %w", errors.Join(errs...))
}

// errForbidden: the harness does not send this command to servers that are not its own.
var errForbidden = errors.New("not sent to servers that the harness did not start")

// Do sends CLUSTER FAILOVER, without options, and refuses everything else.
func (f Failover) Do(ctx context.Context, node string, args ...any) (any, error) {
	words := cluster.Words(args)
	if command := strings.Join(words, " "); command != "CLUSTER FAILOVER" {
		return nil, fmt.Errorf("%s: %w", command, errForbidden)
	}
	s, err := f.node(node)
	if err != nil {
		return nil, err
	}
	return s.one(ctx, words...)
}

package zookeeperreader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/jute"
)

// Time writes a node and reads when that was: the leader gives each transaction its own time. So only the time of the
// leader can be read.
func (r *Reader) Time(ctx context.Context) (at time.Time, err error) {
	err = r.locked(ctx, func() error {
		if r.is != "master" {
			return fmt.Errorf("%w: it is not the leader", errors.ErrUnsupported)
		}
		at, err = r.written()
		return err
	})
	return at, err
}

// clockNode is the node that the harness writes to learn a leader's time. It is not below the node of the locks.
const clockNode = "/lockchaos-clock"

// written writes clockNode and returns the time of that transaction.
func (r *Reader) written() (time.Time, error) {
	for {
		var set jute.Message
		set.AppendString(clockNode)
		set.AppendBytes(nil)
		set.AppendInt(-1) // any version
		reply, code, err := r.exchange(opSetData, set)
		switch {
		case err != nil:
			return time.Time{}, err
		case code == 0:
			for range 3 { // czxid, mzxid, ctime
				reply.Long()
			}
			return time.UnixMilli(reply.Long()), nil
		case code != errNoNode:
			return time.Time{}, fmt.Errorf("writing %s: error %d", clockNode, code)
		}
		var create jute.Message
		create.AppendString(clockNode)
		create.AppendBytes(nil)
		appendRights(&create, cluster.NodeRights(true))
		create.AppendInt(0) // persistent
		switch _, code, err = r.exchange(opCreate, create); {
		case err != nil:
			return time.Time{}, err
		case code != 0 && code != errNodeExists:
			return time.Time{}, fmt.Errorf("creating %s: error %d", clockNode, code)
		}
	}
}

// Of the protocol.
const (
	opCreate      = 1
	opSetData     = 5
	errNodeExists = -110
)

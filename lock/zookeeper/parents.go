package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// makeParent creates a node below the root, which is the parent of a queue or of the marks, and its own parents. It is
// a container (ZooKeeper 3.5.3 or newer): servers remove it when it has been empty for a while. Only the parent of a
// queue has the rights of the lock; the others may be shared with clients of another identity. The client needs no
// right to create parents that exist.
func (c *claim) makeParent(ctx context.Context, dir string) error {
	shared := zk.WorldACL(zk.PermAll)
	own := shared
	if dir != c.marks() {
		own = c.acl()
	}
	var refused error
	for at := 1; at > 0; {
		path := dir
		if next := strings.IndexByte(dir[at:], '/'); next >= 0 {
			path, at = dir[:at+next], at+next+1
		} else {
			at = 0
		}
		_, err := read(ctx, c.session, c.request("prepare"), func() (string, error) {
			if path == dir {
				return c.session.conn.CreateContainer(path, nil, zk.FlagContainer, own)
			}
			return c.session.conn.Create(path, nil, 0, shared)
		})
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
		case errors.Is(err, zk.ErrNoAuth) && path != dir: // servers say so before they look whether it exists
			refused = fmt.Errorf("create %s: %w", path, err)
		case errors.Is(err, zk.ErrNoNode) && refused != nil:
			return refused
		default:
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	return nil
}

package zookeeper

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock/internal/queues"
)

// announce writes a node that has its permits, which wakes the one behind it: that may fit, too, and has to watch all
// before it now.
func (c *claim) announce(n *node) {
	c.session.Tasks.Go(func() {
		_, _ = read(context.Background(), c.session, c.request("announce"), func() (*zk.Stat, error) {
			return c.session.conn.Set(n.path(), c.owner, -1)
		})
	})
}

// inOrder sorts names by their numbers. Numbers wrap at 2³¹: the difference to the number of own, which is
// among them, says which is earlier (kazoo#606).
func inOrder(own string, names []string) []string {
	at := numberOf(own)
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(numberOf(a)-at, numberOf(b)-at) })
	return names
}

// isEntry reports whether a request has this name, with the number of ten digits that the server has appended.
func isEntry(name string) bool {
	const parts, digits = 3, 10
	words := strings.SplitN(name, "-", parts)
	if len(words) < parts || len(words[2]) < digits || !queues.IsEntry(name) {
		return false
	}
	_, err := strconv.ParseInt(words[2], 10, 32)
	return err == nil
}

// numberOf is the number that the server has appended to a name: ID-WORD-NUMBER. One of others counts as the first.
func numberOf(name string) int32 {
	const parts = 3
	words := strings.SplitN(name, "-", parts)
	if len(words) < parts {
		return 0
	}
	v, _ := strconv.ParseInt(words[2], 10, 32)
	return int32(v)
}

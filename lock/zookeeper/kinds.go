package zookeeper

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// announce writes a node that has its permits, which wakes the one behind it: that may fit, too, and has to watch all
// before it now.
func (c *claim) announce(n *node) {
	c.session.Tasks.Go(func() {
		_, _ = read(context.Background(), c.session, func() (*zk.Stat, error) {
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

package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
)

// Words in the names of nodes.
const (
	lockWord = "lock"
	readWord = "read"
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

// exclusive is a request that waits for every earlier one.
func exclusive() kind {
	return kind{lockWord, func(own string, names []string) turn {
		last, found := before(own, names, nil)
		return turn{found: found, now: last == "", after: last}
	}}
}

// shared is a request that waits for earlier ones that are not shared.
func shared() kind {
	return kind{readWord, func(own string, names []string) turn {
		last, found := before(own, names, func(name string) bool { return wordOf(name) != readWord })
		return turn{found: found, now: last == "", after: last}
	}}
}

// permits is a request for n of total. It is served when it fits beside all earlier ones, so those that are served are
// always the first ones: small requests do not overtake large ones.
func permits(n, total int) kind {
	return kind{fmt.Sprintf("%dof%d", n, total), func(own string, names []string) turn {
		names, at := slices.Clone(names), numberOf(own)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(numberOf(a)-at, numberOf(b)-at) })
		sum := 0
		for i, name := range names {
			room := sum <= total
			sum += weightOf(name, total)
			if name != own {
				continue
			}
			t := turn{found: true, now: sum <= total, any: room}
			t.announce = t.now && i < len(names)-1 && (i > 0 || sum < total)
			if i > 0 {
				t.after = names[i-1]
			}
			return t
		}
		return turn{}
	}}
}

// weightOf is how many permits a node is for; one that is no request for permits is for all.
func weightOf(name string, total int) int {
	n, _, _ := strings.Cut(wordOf(name), "of")
	if v, err := strconv.Atoi(n); err == nil && v > 0 && v <= total {
		return v
	}
	return total
}

// before is the last of the names that come before own and that count; "" if there is none. False: own is not among
// them. Numbers wrap at 2³¹: the difference says which is earlier (kazoo#606).
func before(own string, names []string, counts func(name string) bool) (last string, found bool) {
	at := numberOf(own)
	for _, name := range names {
		found = found || name == own
		if d := numberOf(name) - at; d < 0 && (counts == nil || counts(name)) && (last == "" || d > numberOf(last)-at) {
			last = name
		}
	}
	return last, found
}

// partsOf are the word and the number in the name of a node.
func partsOf(name string) (word string, number int32) {
	const parts = 3
	words := strings.SplitN(name, "-", parts)
	if len(words) < parts {
		return "", 0 // of others: it counts as the first
	}
	v, _ := strconv.ParseInt(words[2], 10, 32)
	return words[1], int32(v)
}

func wordOf(name string) string {
	word, _ := partsOf(name)
	return word
}

// numberOf is the number that the server has appended to a name.
func numberOf(name string) int32 {
	_, number := partsOf(name)
	return number
}

// checkPermits refuses a number of permits that is never free.
func checkPermits(n, total int) error {
	if n < 1 || n > total {
		return fmt.Errorf("%w: %d of %d permits", lock.ErrPermits, n, total)
	}
	return nil
}

package engine

import (
	"slices"
	"sort"
	"strconv"
	"strings"
)

// messages sorts pattern messages that arrive together, and channels that are unsubscribed together: Redis sends them
// in the order of a hash table.
func messages(all []value) []value {
	isPattern := func(v value) bool { return len(v.items) == 4 && v.items[0].text == "=pmessage" }
	isEnd := func(v value) bool {
		return len(v.items) == 3 && strings.HasSuffix(v.items[0].text, "unsubscribe")
	}
	var names []value
	all = slices.Clone(all)
	for from := 0; from < len(all); from++ {
		to := from
		for to < len(all) && isPattern(all[to]) {
			to++
		}
		for ; from < len(all) && isEnd(all[from]); from++ {
			names = append(names, all[from].items[1])
		}
		if len(names) > 0 {
			for i, name := range sorted(names, false) {
				v := &all[from-len(names)+i]
				v.items = []value{v.items[0], name, v.items[2]}
			}
			names, from = nil, from-1
			continue
		}
		if to > from {
			copy(all[from:to], sorted(all[from:to], false))
			from = to - 1
		}
	}
	return all
}

// tolerance says which differences between two replies are allowed.
type tolerance struct {
	kindOnly  bool // compare only the first byte
	unordered bool // the order of arrays
	pairs     bool // the order of pairs
	loose     bool // numbers that depend on the time
}

// toleranceOf returns the tolerance for the reply to a command. EXEC may have executed any command.
func toleranceOf(args []string) tolerance {
	name := strings.ToLower(args[0])
	switch name {
	case "object": // the reference count, and the idle time
		return tolerance{kindOnly: len(args) > 1 && among(args[1], "refcount", "idletime")}
	case "dbsize": // Redis removes expired keys when it finds them
		return tolerance{kindOnly: true}
	case "acl":
		return tolerance{kindOnly: len(args) > 1 && among(args[1], "log")}
	case "info", "time", "hello", "command", "lastsave", "randomkey":
		return tolerance{kindOnly: true}
	case "client":
		return tolerance{kindOnly: len(args) > 1 && among(args[1], "id", "info", "list")}
	case "srandmember", "hrandfield", "zrandmember":
		return tolerance{kindOnly: len(args) == 2, unordered: true, pairs: len(args) > 3}
	case "exec", "keys", "smembers", "sunion", "sinter", "sdiff", "spop", "pubsub", "scan", "sscan":
		return tolerance{unordered: true, loose: true}
	case "ttl", "pttl", "expiretime", "pexpiretime", "eval", "evalsha", "eval_ro", "evalsha_ro":
		return tolerance{loose: true, unordered: false}
	}
	return tolerance{}
}

func among(word string, list ...string) bool { return slices.Contains(list, strings.ToLower(word)) }

func same(t tolerance, a, b value) bool {
	if a.kind != b.kind {
		return false
	}
	if t.kindOnly && a.kind != '-' && (a.text == "-1") == (b.text == "-1") {
		return true
	}
	if a.items == nil || b.items == nil {
		if a.kind == '-' && sameFailure(a.text, b.text) {
			return true
		}
		return a.text == b.text && (a.items == nil) == (b.items == nil) || near(a.text, b.text, t.loose)
	}
	if len(a.items) != len(b.items) {
		return false
	}
	x, y := a.items, b.items
	if t.unordered {
		x, y = sorted(x, t.pairs), sorted(y, t.pairs)
		if t.pairs {
			t.unordered = false
		}
	}
	for i := range x {
		if !same(t, x[i], y[i]) {
			return false
		}
	}
	return true
}

// sameFailure reports whether two errors raised by Lua are the same: the interpreters'
// texts differ, the script and the line do not.
func sameFailure(engine, redis string) bool {
	_, here, ok := strings.Cut(engine, " script: ")
	text, there, ok2 := strings.Cut(redis, " script: ")
	if !ok || !ok2 || here != there || !strings.HasPrefix(engine, "ERR user_script:") {
		return false
	}
	for _, words := range []string{"attempt to ", "bad argument", "'for' "} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// sorted sorts values, or pairs of them.
func sorted(items []value, pairs bool) []value {
	if pairs && len(items)%2 == 0 {
		joined := make([]value, 0, len(items)/2)
		for i := 0; i < len(items); i += 2 {
			joined = append(joined, value{kind: '*', items: items[i : i+2]})
		}
		items = joined
	}
	items = slices.Clone(items)
	for i := range items {
		if items[i].items != nil && !pairs {
			items[i].items = sorted(items[i].items, false)
		}
	}
	sort.SliceStable(items, func(i, j int) bool { return items[i].String() < items[j].String() })
	return items
}

// near compares numbers that depend on the time of the command, and lists of them:
// instants in milliseconds or microseconds, and, if left is true, remaining
// milliseconds.
func near(a, b string, left bool) bool {
	x, y := strings.Fields(strings.TrimPrefix(a, "=")), strings.Fields(strings.TrimPrefix(b, "="))
	if len(x) != len(y) || len(x) == 0 {
		return false
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		m, err := strconv.ParseFloat(x[i], 64)
		n, err2 := strconv.ParseFloat(y[i], 64)
		if err != nil || err2 != nil {
			return false
		}
		limit := 10_000.0 // milliseconds
		switch {
		case m > 1e17, m < 1e11 && (!left || m < 50):
			return false
		case m > 1e14:
			limit *= 1000
		}
		if m-n > limit || n-m > limit {
			return false
		}
	}
	return true
}

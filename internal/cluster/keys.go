package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Ask sends commands to one server in one round trip and returns one reply for
// each: string, int64, nil, []any, or another type for an error reply.
type Ask func(commands ...[]string) ([]any, error)

// commandsPerKey is how many commands [KeyCommands] has for each key.
const commandsPerKey = 3

// noKey is PTTL's reply for a key that does not exist (redis.io, PTTL).
const noKey = -2

// KeyCommands are the commands whose replies [keysSeen] reads: who holds each key.
func KeyCommands(keys []string) [][]string {
	commands := make([][]string, 0, commandsPerKey*len(keys))
	for _, key := range keys {
		// The reader of the other type replies WRONGTYPE, which is cheaper than asking for the type first.
		commands = append(commands, []string{"HGETALL", key}, []string{"GET", key}, []string{"PTTL", key})
	}
	return commands
}

// keysSeen reads the replies to KeyCommands(keys). Free keys are left out; the
// result is nil if all are free. A held key whose type names no owner (a set, a
// list) has an empty Owner.
func keysSeen(keys []string, replies []any) map[string]history.KeyState {
	var all map[string]history.KeyState
	for i, key := range keys[:min(len(keys), len(replies)/commandsPerKey)] {
		seen, held := keySeen(replies[commandsPerKey*i:][:commandsPerKey])
		if !held {
			continue
		}
		if all == nil {
			all = make(map[string]history.KeyState, len(keys))
		}
		all[key] = seen
	}
	return all
}

// ReadKeys is keysSeen without permits whose lease has ended: these stay in the set of a semaphore of ours until a
// client takes them back. Permits that are neither in that set nor free belong to nobody, and count. ask is called if
// there are such semaphores. A server that refuses to read a key, as one of a Redis Cluster that is down does, does not
// show that it is free.
func ReadKeys(ask Ask, keys []string, replies []any) (map[string]history.KeyState, error) {
	for i := commandsPerKey - 1; i < len(replies); i += commandsPerKey {
		if err, refused := replies[i].(error); refused && !elsewhere(err) {
			return nil, fmt.Errorf("reading keys: %w", err)
		}
	}
	seen := keysSeen(keys, replies)
	var leased []string
	commands := [][]string{{"TIME"}}
	for i, key := range keys[:min(len(keys), len(replies)/commandsPerKey)] {
		pairs, ok := replies[commandsPerKey*i].([]any)
		if ok && seen[key].Permits > 0 && fieldsOf(pairs)["kind"] == "permits" {
			leased = append(leased, key)
			commands = append(commands, leasedCommands(key)...)
		}
	}
	if len(leased) == 0 {
		return seen, nil
	}
	replies, err := ask(commands...)
	if err != nil || len(replies) < len(commands) {
		return nil, fmt.Errorf("asking for leased permits: %d replies: %w", len(replies), err)
	}
	for i, key := range leased {
		state, answers := seen[key], replies[1+perLeased*i:][:perLeased]
		if !reflect.DeepEqual(answers[0], answers[perLeased-1]) {
			return nil, fmt.Errorf("the permits of %q changed while they were read", key)
		}
		if n, ok := leasedPermits(answers, replies[0]); ok {
			state.Permits = n
		}
		if seen[key] = state; state.Permits == 0 {
			delete(seen, key)
		}
	}
	return seen, nil
}

// perLeased is how many commands leasedCommands has.
const perLeased = 3

// leasedCommands read a semaphore of leased permits, its sizes before and after. They are no transaction, because a
// server without memory for writes refuses to queue any command.
func leasedCommands(key string) [][]string {
	sizes := []string{"HMGET", key, "total", "free"}
	return [][]string{sizes, {"ZRANGE", "{" + key + "}:permits", "0", "-1", "WITHSCORES"}, sizes}
}

// leasedPermits reads the replies to leasedCommands: how many permits have a lease that has not ended at the time of
// the server, and how many are missing. When all leases have ended the set is gone, and its permits count as free.
func leasedPermits(replies []any, clock any) (n int, ok bool) {
	number := func(x any) float64 {
		f, _ := strconv.ParseFloat(fmt.Sprint(x), 64)
		return f
	}
	now, err := ParseTime(clock)
	sizes, isSizes := replies[0].([]any)
	members, isList := replies[1].([]any)
	if err != nil || !isSizes || len(sizes) < 2 || !isList {
		return 0, false
	}
	for i := 1; i < len(members); i += 2 {
		if number(members[i]) > float64(now.UnixMicro())/1000 {
			n++
		}
	}
	if len(members) > 0 {
		n += max(0, int(number(sizes[0])-number(sizes[1]))-len(members)/2)
	}
	return n, true
}

func keySeen(replies []any) (seen history.KeyState, held bool) {
	ttl, ok := replies[2].(int64)
	if !ok || ttl == noKey {
		return history.KeyState{}, false
	}
	if value, ok := replies[1].(string); ok {
		seen.Owner = strings.TrimPrefix(value, "h:") // as package lock marks the holds of a mutex
	} else if pairs, ok := replies[0].([]any); ok {
		seen = holder(fieldsOf(pairs))
	}
	seen.TTL = time.Duration(ttl) * time.Millisecond
	return seen, seen.Limit == 0 || seen.Permits > 0 // a semaphore's key exists also while it is free
}

// elsewhere reports whether a server of a Redis Cluster says that another one has a key.
func elsewhere(err error) bool {
	code, _, _ := strings.Cut(err.Error(), " ")
	return code == "MOVED" || code == "ASK"
}

func fieldsOf(pairs []any) map[string]string {
	fields := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	return fields
}

// holder finds who holds a lock that is a hash. A semaphore of ours has the fields
// total and free; a readers-writer lock has writer, and r:OWNER for each reader;
// another lock of ours has owner and count. Others (Redisson and its successors)
// have one field per holder, whose value is the hold count, and may have a field mode.
func holder(fields map[string]string) history.KeyState {
	number := func(field string) int {
		n, _ := strconv.Atoi(fields[field])
		return n
	}
	_, reads := fields["reads"]
	switch {
	case fields["kind"] != "" && fields["total"] != "":
		return history.KeyState{Permits: number("total") - number("free"), Limit: number("total")}
	case fields["owner"] != "":
		return history.KeyState{Owner: fields["owner"], Count: number("count")}
	case reads && fields["writer"] != "":
		return history.KeyState{Owner: fields["writer"], Mode: "write", Count: number("writes")}
	}
	prefix := "" // of the fields that are holders
	if reads {
		prefix = "r:"
	}
	seen := history.KeyState{Mode: fields["mode"]}
	for field := range fields { // in any order: they are sorted
		if name, is := strings.CutPrefix(field, prefix); is && field != "mode" {
			seen.Owners = append(seen.Owners, name)
		}
	}
	slices.Sort(seen.Owners)
	if len(seen.Owners) > 0 {
		seen.Owner = seen.Owners[0]
	}
	if len(seen.Owners) < 2 {
		seen.Owners = nil
		seen.Count = number(prefix + seen.Owner)
	}
	return seen
}

// ScanKeys are the names of a server's keys that match a pattern, each once. do sends one command; options are more
// options of SCAN, such as TYPE list. One SCAN looks at 1000 keys, which takes the server less than a millisecond.
func ScanKeys(do func(command ...string) (any, error), pattern string, options ...string) (names []string, err error) {
	for cursor := "0"; ; {
		reply, err := do(append([]string{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, options...)...)
		if err != nil {
			return nil, err
		}
		page, _ := reply.([]any)
		if len(page) != 2 {
			return nil, fmt.Errorf("unexpected reply to SCAN: %v", reply)
		}
		keys, _ := page[1].([]any)
		for _, key := range keys {
			if name := fmt.Sprint(key); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if cursor = fmt.Sprint(page[0]); cursor == "0" {
			return names, nil
		}
	}
}

// KeyTTLs lists the keys of a server with their remaining time to live; see
// [Inventory]. It blocks a real server while it lists: for the end of a run.
func KeyTTLs(ask Ask) (map[string]time.Duration, error) {
	replies, err := ask([]string{"KEYS", "*"})
	if err != nil || len(replies) == 0 {
		return nil, err
	}
	names, _ := replies[0].([]any)
	return TTLs(ask, Words(names))
}

// Words converts the words of a command or a reply to text.
func Words(all []any) []string {
	return format.Texts(all, func(word any) string { return fmt.Sprint(word) })
}

// TTLs are the remaining times to live of the existing keys; see [Inventory].
func TTLs(ask Ask, names []string) (map[string]time.Duration, error) {
	keys := make(map[string]time.Duration, len(names))
	if len(names) == 0 {
		return keys, nil
	}
	commands := make([][]string, len(names))
	for i, name := range names {
		commands[i] = []string{"PTTL", name}
	}
	replies, err := ask(commands...)
	if err != nil {
		return nil, err
	}
	for i, reply := range replies {
		if ms, ok := reply.(int64); ok && ms != noKey { // noKey: it has expired since it was listed
			keys[commands[i][1]] = time.Duration(ms) * time.Millisecond
		}
	}
	return keys, nil
}

const clientPrefix = "client:"

// UnknownClient names a caller whose address belongs to no server or client of the run.
const UnknownClient = clientPrefix + "?"

// ClientName is the name of client i (from 0) as an end of a [Link]: "client:0".
func ClientName(i int) string { return clientPrefix + strconv.Itoa(i) }

// ClientNumber is the number in a name that [ClientName] made; false: it is no such name.
func ClientNumber(name string) (i int, ok bool) {
	number, ok := strings.CutPrefix(name, clientPrefix)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(number)
	return i, err == nil && i >= 0
}

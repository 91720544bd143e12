package engine

import (
	"slices"
	"strconv"
	"strings"
)

// The memory that a simulated server reports: a constant, and a constant per key. It has to be compared with
// maxmemory, not to be right.
const (
	usedMemoryEmpty  = 1 << 20
	usedMemoryPerKey = 128
)

const errOOM = "OOM command not allowed when used memory > 'maxmemory'."

func (s *Server) usedMemory() (n int64) {
	n = usedMemoryEmpty
	for _, db := range s.dbs {
		n += int64(db.keys.len()) * usedMemoryPerKey
	}
	return n
}

// memoryPolicies are the values of maxmemory-policy, in the order of Redis' error message.
func memoryPolicies() []string {
	return []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"}
}

// freeMemory evicts keys until the used memory is below maxmemory, and reports whether it is. A replica ignores the
// limit, as with replica-ignore-maxmemory. Which key goes first is not Redis' choice, which is drawn: the oldest one.
func (s *Server) freeMemory() bool {
	if s.maxMemory == 0 || s.replica || s.applying {
		return true
	}
	if s.usedMemory() <= s.maxMemory {
		return true
	}
	policy := s.config["maxmemory-policy"]
	for _, db := range s.dbs {
		var names []string // a dict must not be modified while it is iterated over
		for name, o := range db.keys.all() {
			if strings.HasPrefix(policy, "allkeys-") || strings.HasPrefix(policy, "volatile-") && o.expires != never {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if s.usedMemory() <= s.maxMemory {
				return true
			}
			s.evict(db.id, name)
		}
	}
	return s.usedMemory() <= s.maxMemory
}

func (s *Server) evict(db int, key string) {
	name := []byte(key)
	s.touch(db, key)
	s.remove(db, key)
	s.stats.evicted++
	s.propagate(db, [][]byte{[]byte("DEL"), name})
	s.flushEffects() // each on its own
}

// outOfMemory is the error if a command of a client is refused because memory is full, or "". In a transaction every
// command that would be queued is.
func (c *Conn) outOfMemory(spec *Spec, args [][]byte) string {
	s := c.s
	s.memoryFull = !s.freeMemory()
	if !s.memoryFull {
		return ""
	}
	queued := c.multi != nil && !slices.Contains([]string{"exec", "discard", "quit", "reset"}, spec.Name)
	if queued || c.FlagsOf(spec)&DenyOOM != 0 || c.scriptNeedsMemory(spec, args) {
		return errOOM
	}
	return ""
}

// scriptNeedsMemory reports whether a command runs a script whose first line has flags, none of which allows it to
// run while memory is full (evalGetCommandFlags in Redis' eval.c).
func (c *Conn) scriptNeedsMemory(spec *Spec, args [][]byte) bool {
	sc := c.flaggedScript(spec, args)
	return sc != nil && !sc.readOnly && !sc.allowOOM
}

// flaggedScript is the script that a command runs if its first line has flags, or nil.
func (c *Conn) flaggedScript(spec *Spec, args [][]byte) *script {
	var sc *script
	switch spec.Name {
	case "eval", "eval_ro":
		sc = &script{}
		if _, bad := shebang(string(args[1]), sc); bad != "" {
			return nil // refused when it is compiled
		}
	case "evalsha", "evalsha_ro":
		in := c.s.scripts()
		sc, _ = in.scripts.get(in.digest(args[1]))
	}
	if sc == nil || !sc.flags {
		return nil
	}
	return sc
}

// parseMemory reads a number of bytes with its unit, as in redis.conf: 100, 1kb, 1m.
func parseMemory(text string) (n int64, ok bool) {
	text = strings.ToLower(text)
	digits := strings.TrimRight(text, "bkmg")
	factor, ok := map[string]int64{
		"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1000_000, "mb": 1 << 20, "g": 1000_000_000, "gb": 1 << 30,
	}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || digits[0] == '+' {
		return 0, false
	}
	return n * factor, true
}

package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// grammar has the commands that are compared, as patterns: {x} is drawn from words,
// [a|b] is one of them or nothing, (a|b) is one of them, and a word with + is repeated
// one to three times.
const grammar = `
append {s} {v}
decr {s}
decrby {s} {i}
get {s}
getdel {s}
getex {s} [ex {sec}|px {ms}|exat {at}|pxat {atms}|persist]
getrange {s} {x} {x}
getset {s} {v}
incr {s}
incrby {s} {i}
incrbyfloat {s} {f}
mget {k}+
mset {s} {v} [{s} {v}]
msetnx {s} {v} [{s} {v}]
psetex {s} {ms} {v}
set {s} {v} [ex {sec}|px {ms}|exat {at}|pxat {atms}|keepttl] [nx|xx] [get]
set {s} {v} [nx|xx] [get]
setex {s} {sec} {v}
setnx {s} {v}
setrange {s} {x} {v}
strlen {s}
substr {s} {x} {x}
bitcount {s} [{x} {x}|{x} {x} bit|{x} {x} byte]
bitop (and|or|xor|not) {s} {s}+
bitpos {s} (0|1|2) [{x}|{x} {x}|{x} {x} bit]
getbit {s} {x}
setbit {s} {x} (0|1|2)
copy {k} {k} [replace] [db {db}]
del {k}+
dbsize
exists {k}+
expire {k} {sec} [nx|xx|gt|lt] [nx|gt]
expireat {k} {at} [nx|xx|gt|lt]
expiretime {k}
flushall [async|sync|foo]
flushdb [async|sync]
keys {pat}
move {k} {db}
object encoding {k}
object freq {k}
object idletime {k}
object refcount {l}
object foo {k}
persist {k}
pexpire {k} {ms} [nx|xx|gt|lt]
pexpireat {k} {atms} [nx|xx|gt|lt]
pexpiretime {k}
pttl {k}
randomkey
rename {k} {k}
renamenx {k} {k}
scan 0 [match {pat}] [count 1000] [type (string|hash|list|set|zset)]
touch {k}+
ttl {k}
type {k}
unlink {k}+
hdel {h} {m}+
hexists {h} {m}
hget {h} {m}
hgetall {h}
hincrby {h} {m} {i}
hincrbyfloat {h} {m} {f}
hkeys {h}
hlen {h}
hmget {h} {m}+
hmset {h} {m} {v} [{m} {v}]
hrandfield {h} [100] [withvalues]
hscan {h} 0 [match {pat}] [count 100]
hset {h} {m} {v} [{m} {v}]
hsetnx {h} {m} {v}
hstrlen {h} {m}
hvals {h}
blmove {l} {l} (left|right) (left|right) {to}
blmpop {to} {num} {l} {l} (left|right) [count {n}]
blpop {l}+ {to}
brpop {l}+ {to}
brpoplpush {l} {l} {to}
lindex {l} {x}
linsert {l} (before|after|foo) {v} {v}
llen {l}
lmove {l} {l} (left|right) (left|right)
lmpop {num} {l} {l} (left|right) [count {n}]
lpop {l} [{n}]
lpos {l} {v} [rank {x}] [count {x}] [maxlen {x}]
lpush {l} {v}+
lpushx {l} {v}+
lrange {l} {x} {x}
lrem {l} {x} {v}
lset {l} {x} {v}
ltrim {l} {x} {x}
rpop {l} [{n}]
rpoplpush {l} {l}
rpush {l} {v}+
rpushx {l} {v}+
sadd {e} {v}+
scard {e}
sdiff {e}+
sdiffstore {e} {e}+
sinter {e}+
sintercard {num} {e} {e} [limit {n}]
sinterstore {e} {e}+
sismember {e} {v}
smembers {e}
smismember {e} {v}+
smove {e} {e} {v}
spop {e} 100
srandmember {e} [100]
srem {e} {v}+
sscan {e} 0 [match {pat}] [count 1000]
sunion {e}+
sunionstore {e} {e}+
bzmpop {to} {num} {z} {z} (min|max) [count {n}]
bzpopmax {z}+ {to}
bzpopmin {z}+ {to}
zadd {z} [nx|xx] [gt|lt] [ch] [incr] {sc} {zm} [{sc} {zm}]
zadd {z} {sc} {zm} {sc} {zm} {sc} {zm}
zcard {z}
zcount {z} {b} {b}
zdiff {num} {z} {z} [withscores]
zdiffstore {z} {num} {z} {z}
zincrby {z} {sc} {zm}
zinter {num} {z} {e} [weights {f} {f}] [aggregate (sum|min|max)] [withscores]
zintercard {num} {z} {z} [limit {n}]
zinterstore {z} {num} {z} {z} [weights {f} {f}] [aggregate (sum|min|max)]
zlexcount {z} {lex} {lex}
zmpop {num} {z} {z} (min|max) [count {n}]
zmscore {z} {zm}+
zpopmax {z} [{n}]
zpopmin {z} [{n}]
zrandmember {z} [100] [withscores]
zrange {z} {x} {x} [rev] [withscores]
zrange {z} {b} {b} byscore [rev] [limit {x} {x}] [withscores]
zrange {z} {lex} {lex} bylex [rev] [limit {x} {x}]
zrangebylex {z} {lex} {lex} [limit {x} {x}]
zrangebyscore {z} {b} {b} [withscores] [limit {x} {x}]
zrangestore {z} {z} {x} {x} [rev]
zrank {z} {zm}
zrem {z} {zm}+
zremrangebylex {z} {lex} {lex}
zremrangebyrank {z} {x} {x}
zremrangebyscore {z} {b} {b}
zrevrange {z} {x} {x} [withscores]
zrevrangebylex {z} {lex} {lex} [limit {x} {x}]
zrevrangebyscore {z} {b} {b} [withscores] [limit {x} {x}]
zrevrank {z} {zm}
zscan {z} 0 [match {pat}]
zscore {z} {zm}
zunion {num} {z} {e} [weights {f} {f}] [aggregate (sum|min|max)] [withscores]
zunionstore {z} {num} {z} {e} [weights {f} {f}] [aggregate (sum|min|max)]
asking
auth {v}
auth {v} {v}
client getname
client getredir
client id
client info
client kill id 999999999
client kill (type foo|foo bar|addr 1.2.3.4:5|nowhere:1)
client list [type (normal|pubsub|foo)]
client no-evict (on|off|foo)
client setname {m}
client setinfo lib-name x
client tracking (off|foo)
client trackinginfo
client unblock 999999999 [timeout|error|foo]
discard
echo {v}
exec
hello [2|3|4|foo] [setname {m}|auth {m} {m}|foo]
multi
ping [{v}]
readonly
readwrite
reset
script exists {sha} {sha}
script flush [sync|async|foo]
script kill
script foo
select {db}
unwatch
wait 0 1
watch {k}+
psubscribe {pat}+
publish {c} {v}
pubsub channels [{pat}]
pubsub numpat
pubsub numsub {c}
pubsub shardchannels [{pat}]
pubsub shardnumsub {c}
punsubscribe [{pat}]
spublish {c} {v}
ssubscribe {c}+
subscribe {c}+
sunsubscribe [{c}]
unsubscribe [{c}]
command
command count
command docs
command info get
command list
config get maxmemory
config resetstat
config set (maxmemory 0|foo bar|maxmemory)
config set maxmemory (0|0|1|1b|1gb|foo|-1)
config set maxmemory-policy (noeviction|allkeys-lru|volatile-ttl|foo)
acl whoami
acl log [reset|1|foo]
acl setuser default (resetchannels|allchannels|&c*|&foo|-publish|+publish|-subscribe|+subscribe|foo|-foo|+@foo)
acl setuser default (-@write|+@write|-@pubsub|+@pubsub|-get|+get|-client|+client|resetchannels|allchannels)
info [server]
role
time
nosuchcommand {v} {v}
`

// words are the choices for names in braces; keys are usually of one kind.
var words = map[string]string{
	"s": "s1 s1 s2 s2 s3 h1 l1 z1", "h": "h1 h1 h1 h2 h2 s1 z1", "l": "l1 l1 l1 l2 l2 s1 h1",
	"e": "e1 e1 e1 e2 e2 e3 s1 z1", "z": "z1 z1 z1 z2 z2 h1 s1", "k": "s1 s2 h1 h2 l1 l2 e1 e2 z1 z2 none",
	"v": "a b c 1 2 -3 10 3.5 007 foo <empty> <long> <bin> 9223372036854775807 -9223372036854775808",
	"m": "a b c d 1 2 field <long> <empty>",
	"i": "1 2 -1 5 100 -7 9223372036854775807 -9223372036854775808 x 1.5 01",
	"f": "0.1 0.2 1 -1.5 3.14 1e3 5.0e-2 10.5 inf -inf nan x 1e400 0x10 123456789.123",
	"x": "0 1 2 -1 -2 3 5 -5 100 -100 7 13 x 0 1 2 -1 -2 3 huge",
	"n": "1 2 3 0 -1 x", "num": "2 2 2 2 2 1 0 3 x", "db": "0 0 0 1 15 16 -1 x",
	"sec":  "100 200 300 1000 0 -1 x 9223372036854775807 9223372036854775",
	"ms":   "100000 200000 900000 0 -5 x 9223372036854775807",
	"at":   "<now+100> <now+500> 1 0 -1 x 9223372036854775807",
	"atms": "<nowms+100000> <nowms+700000> 1 0 -1 x 9223372036854775807",
	"to":   "0 0 1000 1000.5 -1 x inf 1e30",
	"sc":   "1 2 3 1.5 -1 0 inf -inf nan x 1e3 (1 3.14 0.1",
	"b":    "-inf +inf 0 1 2 (1 (2 1.5 (x x 3 inf",
	"lex":  "- + [a [c (b (a [field x", "pat": "* s* ?1 [a-l]1 c* [^a]* \\* h1 ch <empty>",
	"L": "lk1 lk1 lk1 lk2 s1", "P": "la1 la2 la3 la4 w1", "Q": "q1 q1 q1 l1 s1", "W": "w1 w1 w1 lk2",
	"T": "tk1 tk1 tk1 lk2", "D": "d1 d1 d1 w1",
	"o": "owner1 owner2", "H": "o1 o2 o3 o4", "lease": "<lease>", "zm": "a b c d 1 2 field <empty>",
	"json": `{"a":1,"b":[1,"x\u00e9\n"],"c":null,"d":"y"} {"a":-1.5e2} {} {"b":[1,true]}`,
	"c":    "ch c2 s1", "sha": "e0e1f9fabfc9d4800c877a703b823ac0578ff8db aaaa E0E1F9FABFC9D4800C877A703B823AC0578FF8DB",
}

// generator draws commands.
type generator struct {
	*rand.Rand
	patterns []string
	now      int64 // Unix milliseconds of its creation
	scripts  []lockScript
	theme    string // the kind of the keys of a sequence, or ""
}

func newGenerator(seed uint64, now int64, scripts []lockScript) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), now: now, scripts: scripts}
	g.patterns = strings.Split(strings.TrimSpace(grammar), "\n")
	return g
}

func (g *generator) word(name string) string {
	options := strings.Fields(words[name])
	w := options[g.IntN(len(options))]
	if w == "huge" { // but no value that would exhaust the memory
		return []string{"9223372036854775807", "-9223372036854775808", "4294967296"}[g.IntN(3)]
	}
	if len(w) < 3 || w[0] != '<' {
		return w
	}
	switch w {
	case "<empty>":
		return ""
	case "<long>":
		return strings.Repeat("long", 1+g.IntN(40))
	case "<lease>": // all different: a comparison with the remaining time must not depend on a millisecond
		return fmt.Sprint(100_000 + 1000*g.IntN(800))
	case "<bin>":
		return "\x00\xff\r\n\x80"
	}
	unit, more, _ := strings.Cut(strings.Trim(w, "<>"), "+")
	n, _ := strconv.ParseInt(more, 10, 64)
	if unit == "nowms" {
		return fmt.Sprint(g.now + n)
	}
	return fmt.Sprint(g.now/1000 + n)
}

// command draws one from the grammar; one in twenty is made invalid.
func (g *generator) command() []string {
	pattern := g.patterns[g.IntN(len(g.patterns))]
	for g.theme != "" && !strings.Contains(pattern, g.theme) && g.IntN(20) > 0 {
		pattern = g.patterns[g.IntN(len(g.patterns))]
	}
	args := g.expand(pattern)
	way := g.IntN(60)
	if among(args[0], "acl", "client", "config", "spop", "scan", "sscan", "hscan", "zscan", "srandmember", "hrandfield",
		"zrandmember") { // an invalid setting, or a random result, would stay
		way = 60
	}
	switch way {
	case 0:
		args = args[:len(args)-1]
	case 1:
		args = append(args, g.word("v"))
	case 2:
		args[g.IntN(len(args))] = g.word("v")
	}
	if len(args) == 0 {
		return []string{"PING"}
	}
	if g.IntN(2) == 0 {
		args[0] = strings.ToUpper(args[0])
	}
	return args
}

// expand expands a pattern to words.
func (g *generator) expand(pattern string) []string {
	var out []string
	for len(pattern) > 0 {
		var part string
		switch pattern[0] {
		case ' ':
			pattern = pattern[1:]
			continue
		case '[', '(':
			end := strings.IndexByte(pattern, map[byte]byte{'[': ']', '(': ')'}[pattern[0]])
			options := splitTop(pattern[1:end])
			if pattern[0] == '(' || g.IntN(2) == 0 {
				out = append(out, g.expand(options[g.IntN(len(options))])...)
			}
			pattern = pattern[end+1:]
			continue
		}
		part, pattern, _ = strings.Cut(pattern, " ")
		times := 1
		if rest, many := strings.CutSuffix(part, "+"); many {
			part, times = rest, 1+g.IntN(3)
		}
		for range times {
			if strings.HasPrefix(part, "{") {
				out = append(out, g.word(strings.Trim(part, "{}")))
			} else {
				out = append(out, part)
			}
		}
	}
	return out
}

// splitTop splits alternatives, except within parentheses.
func splitTop(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}

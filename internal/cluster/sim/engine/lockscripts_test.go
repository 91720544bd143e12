package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lockScript is a script of package lock or internal/locks/historic, with patterns of the grammar
// for its keys and its arguments.
type lockScript struct{ name, text, keys, args string }

// lockFolder is the relative path of package lock.
const lockFolder = "../../../../lock"

// lockScripts are all scripts of the locks, composed as package lock does.
func lockScripts(t testing.TB) []lockScript {
	t.Helper()
	fair := "{L} {P} {Q} {W} {T} {c}"
	rw := "{L} {P} {W} {Q} {T} {c} {c}"
	acquire := "{H} [{lease}|{lease} {o}|{lease} {o} n|{lease} {o} w|{lease} {o} nW]"
	release := "(h:o1|h:o2|h:o3|h:o4) [{lease} {o}|{lease} {o} w|{lease} {o} W|{lease} {o} wW]"
	heads := map[string]string{ // common prefixes of scripts in package lock
		"foreign plain acquire":       "local defaultLease = '5000'\n",
		"mint foreign plain acquire":  "local defaultLease = '5000'\n",
		"plain release":               "local defaultTTL = '1000'\n",
		"release_plain plain release": "local defaultTTL = '1000'\n",
	}
	const permitQueue = "local queue, waiters, form = KEYS[5], KEYS[6], '^%S+ %d+$'\n"
	for _, names := range []string{"fair_permits_acquire permits_acquire", "fair_permits_leave permits_release"} {
		heads["publish counted tombstone queue fair_permits "+names] = permitQueue
	}
	for _, names := range []string{
		"foreign plain mint queue publish fair_queue fair_acquire",
		"foreign plain mint queue publish fair_queue fair_release",
		"mint queue publish fair_queue fair_waiters", "plain mint queue publish fair_queue fair_force",
	} {
		heads[names] = "local queue, waiters, form = KEYS[3], KEYS[4], '^%S+ '\n"
	}
	var all []lockScript
	for _, row := range append(slices.Concat(redissonScripts(), countedScripts(), movingScripts()), [][3]string{
		{"foreign plain acquire", "{L} {P}", acquire},
		{"mint foreign plain acquire", "{L} {P} {T}", acquire},
		{"plain release", "{L} {P} [{P}]", release},
		{"release_plain plain release", "{L} {P} [{P}]", release},
		{"renew", "{L} {L}", "(h:o1|h:o2|o3) {lease} (h:o1|h:o2|o3) {lease}"},
		{"record", "{P}", "{lease} (0|1|7)"},
		{"token", "{L}", "{H} (1|2|99999999999999999)"},
		{"plain inspect", "{L}", "{c}"},
		{"plain publish_both force", "{L} {c}", "{c}"},
		{"foreign plain mint queue publish fair_queue fair_acquire", fair, "{H} {lease} {o} (n|{v}) (0|{lease})"},
		{"foreign plain mint queue publish fair_queue fair_release", fair, "{H} {lease} {o}"},
		{"mint queue publish fair_queue fair_waiters", fair, ""},
		{"plain mint queue publish fair_queue fair_force", fair, ""},
		{"mint publish_slot rw_hold rw_state rw_acquire", rw, "{H} {lease} {o} (n|{v}) (r|w) (0|5000)"},
		{"publish rw_hold rw_state rw_release", rw, "{H} {lease} {o}"},
		{"publish rw_hold rw_state rw_force", rw, ""},
		{"publish rw_hold rw_state rw_inspect", rw, ""},
		{"rw_hold rw_renew", "{L} {W}", "{H} {lease}"},
	}...) {
		text := scriptText(t, "codes") + heads[row[0]] + scriptText(t, strings.Fields(row[0])...)
		all = append(all, lockScript{"codes " + row[0], text, row[1], row[2]})
	}
	multi := scriptText(t, "codes", "mint", "foreign", "plain") +
		"local function acquire(KEYS, ARGV)\nlocal defaultLease\n" + scriptText(t, "acquire") + "\nend\n" +
		scriptText(t, "multi_acquire")
	for _, keys := range []string{"{L} {P} {L} {P}", "{L} {P} {T} {L} {P} {T}"} {
		all = append(all, lockScript{"multi_acquire", multi, keys, "{H} {lease} {o} (w|W) {o} (w|W)"})
	}
	all = append(all, lockScript{"set", "return redis.call('SET', KEYS[1], 'h:' .. ARGV[1], 'NX', 'PX', 5000)", "{L}", "{H}"})
	guarded := scriptText(t, "fence") + "\nreturn redis.call('SET', KEYS[1], ARGV[1])"
	all = append(all, lockScript{"fence", guarded, "{s} {T}", "{v} (1|2|10|99999999999999999)"})
	return append(all, historicScripts(t)...)
}

// countedScripts are the scripts of semaphores and latches: names, keys and arguments. Without a second key, as while
// their slot migrates, the tombstone is the last argument.
func countedScripts() [][3]string {
	return [][3]string{
		{"publish counted tombstone semaphore_set", "{L} {P} [{W}]",
			"{lease} (semaphore|permits) (try|set|add) (1|2|3|-1) {c}"},
		{"publish counted tombstone semaphore_set", "{L}", "{lease} semaphore (try|set|add) (1|2|3|-1) {c} {P}"},
		{"publish counted tombstone semaphore_acquire", "{L} {P}", "{H} (1|2|5)"},
		{"publish counted tombstone semaphore_acquire", "{L}", "{H} (1|2|5) {P}"},
		{"publish counted tombstone semaphore_release", "{L} {P}", "{lease} {c} {H} [{H}]"},
		{"publish counted tombstone semaphore_release", "{L}", "(1|{lease}) {c} {H} {P}"},
		{"publish counted semaphore_state", "{L} {W}", "(semaphore|permits) {c}"},
		{"publish counted tombstone permits_acquire", "{L} {P} {W} {c}", "{H} {lease} (1|2)"},
		{"publish counted tombstone permits_release", "{L} {P} {W} {c}", "{lease} (o1.1|o2.1|o3.1|o4.1) (o1.2|o2.2|x)"},
		{"publish counted permits_renew", "{L} {W} {c} {L} {W} {c}", "{H} {lease} (1|2) {H} {lease} 1"},
		{"publish counted tombstone queue fair_permits fair_permits_acquire permits_acquire",
			"{L} {P} {W} {c} {Q} {D}", "{H} {lease} (1|2) (0|{lease})"},
		{"publish counted tombstone queue fair_permits fair_permits_leave permits_release",
			"{L} {P} {W} {c} {Q} {D}", "{lease} (o1.1|o2.1|o3.1|o4.1) (o1.2|o2.2|x)"},
		{"publish counted tombstone latch_arm", "{L} {P}", "{lease} (1|2|3) {c}"},
		{"publish counted tombstone latch_arm", "{L}", "(1|{lease}) (1|2|3) {c} {P}"},
		{"publish counted tombstone latch_count", "{L} {P}", "{lease} {H} 0 {c}"},
		{"publish counted tombstone latch_count", "{L}", "(1|{lease}) {H} 0 {c} {P}"},
		{"publish counted latch_state", "{L}", "0"},
		{"publish counted tombstone latch_delete", "{L} {P}", "{lease} {c}"},
		{"publish counted tombstone latch_delete", "{L}", "{lease} {c} {P}"},
	}
}

// movingScripts are the scripts of fair and readers-writer locks and leased permits while their slot migrates, which
// name one key: names, keys and arguments.
func movingScripts() [][3]string {
	return [][3]string{
		{"mint rw_hold rw_moving rw_acquire", "{L}", "{H} {lease} {o} (n|{v}) (r|w) 0 {P} (-1|20) [{v}|{v} {H}]"},
		{"rw_hold rw_moving rw_moving_release", "{L}", "{H} {o}"},
		{"rw_hold rw_moving rw_moving_renew", "{L}", "{H} {lease}"},
		{"rw_leases", "{W}", "(ended|last|add {H} 5000)"},
		{"publish counted permits_moving permits_moving_acquire", "{W}", "{H} {lease} (1|2) (1|3) {P}"},
		{"publish counted permits_moving permits_moving_release", "{W}", "(o1.1|o2.1|o3.1|o4.1) (o1.2|o2.2|x)"},
		{"publish counted permits_moving permits_moving_renew", "{W}", "{H} {lease} (1|2)"},
		{"publish counted permits_total", "{L}", ""},
		{"queue_moving", "{Q}", "{H} (join {lease}|ahead|leave)"},
		{"queue_moving", "{D}", "{H} (beat {lease}|leave|alive {H} x)"},
	}
}

// redissonScripts are the scripts of mutexes in Redisson's layout: names, keys and arguments.
func redissonScripts() [][3]string {
	return [][3]string{
		{"foreign redisson_acquire", "{L} {P} [{T}]", "{H} {lease} {o} (n|{v})"},
		{"foreign redisson_acquire", "{L}", "{H} {lease} {o} (n|{v}) {P}"},
		{"redisson_release", "{L} {P} [{P}]", "{H} {lease} {o} (w|W) {c}"},
		{"redisson_release", "{L}", "{H} {lease} {o} (w|W) {c}"},
		{"redisson redisson_inspect", "{L} {T}", "{c}"},
		{"redisson_token", "{L}", "(1|2|99999999999999999)"},
		{"redisson publish_both redisson_force", "{L} {T}", "{c}"},
	}
}

func scriptText(t testing.TB, names ...string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(lockFolder, "script", name+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// historicScripts are the scripts among the constants of package historic.
func historicScripts(t testing.TB) []lockScript {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../../locks/historic", "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("the files of internal/locks/historic: %v, %v", paths, err)
	}
	var all []lockScript
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && strings.Contains(lit.Value, "redis.call") {
				text, _ := strconv.Unquote(lit.Value)
				all = append(all, lockScript{filepath.Base(path), text, "{L} {c}", "({o}|{lease}) {H}"})
			}
			return true
		})
	}
	if len(all) < 4 {
		t.Fatalf("only %d scripts found in internal/locks/historic", len(all))
	}
	return all
}

func TestEveryLockScriptIsCompared(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(lockFolder, "script", "*.lua"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the scripts of package lock: %v, %v", files, err)
	}
	names := ""
	for _, s := range lockScripts(t) {
		names += " " + s.name + " "
	}
	names += " server " // replies with the id of its server, which differs between any two
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".lua"); !strings.Contains(names, " "+name+" ") {
			t.Errorf("%s is not among the scripts that are compared with Redis", f)
		}
	}
}

// ownScripts test features of scripts, without error texts that depend on the
// interpreter.
var ownScripts = []lockScript{
	{"value", "return {1, 2.9, -1.5, 'a', true, false, {3, {}}, nil, 4}", "", ""},
	{"status", "return redis.status_reply(ARGV[1])", "", "{v}"},
	{"error", "return redis.error_reply(ARGV[1])", "", "(FOO|FOO bar|-FOO bar)"},
	{"raise", "error(ARGV[1])", "", "(boom|x y)"},
	{"raise table", "\n\nerror({err = ARGV[1] or 'FOREIGN'})", "", "(FOREIGN|FOREIGN x)"},
	{"call", "return redis.call(unpack(ARGV))", "",
		"(get {s}|hget {k} f|foo|get|set {s} {v}|incr {s}|lpush {l} {v}|multi|{v})"},
	{"pcall", "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return r.err end return r", "",
		"(get {s}|hget {k} f|foo|get|set {s} {v} px {ms}|subscribe x|blpop {l} 0|zadd {z} 1 a|type {k}|ping)"},
	{"numbers", "local n = tonumber(ARGV[1]) or 0 return {n, tostring(n), n .. '', tostring(n * 3.7), n % 7, " +
		"string.format('%d %5.2f %s %x', n, n, n, 255), math.floor(n / 3)}", "", "" +
		"(0|1|-3|10|010|0x10|1e3|1700000000000|1.5)"},
	{"concat", "return ARGV[1] .. 1 .. '|' .. 1e15 .. '|' .. 2^53 .. '|' .. 0.1 .. '|' .. -0.5 .. '|' .. 1e100",
		"", "{v}"},
	{"arguments", "redis.call('set', KEYS[1], 1700000000000000) redis.call('append', KEYS[1], 0.1) " +
		"return redis.call('get', KEYS[1])", "{s}", ""},
	{"json", "return cjson.encode({1, 'x', 2.5, {a = ARGV[1]}, {}, true, cjson.null, 1e15})",
		"", "(a|b|x)"},
	{"json back", "local t = cjson.decode(ARGV[1]) return {t.a, t.b and t.b[2], type(t.c), t.c == cjson.null, t.d}", "",
		"{json}"},
	{"bits", "return {bit.band(12, 10), bit.bor(12, 10), bit.bxor(12, 10), bit.bnot(0), bit.lshift(1, 31), " +
		"bit.rshift(-1, 28), bit.arshift(-16, 2), bit.rol(1, 33), bit.tobit(4294967295), bit.tohex(255, 4), bit.bswap(1)}",
		"", ""},
	{"strings", "local s = ARGV[1] return {#s, s:upper(), string.rep(s, 2, 'x'), s:sub(2, -2), " +
		"s:find('o', 1, true) or -1, (s:gsub('o', '0')), string.format('%q', 'a\"b'), " +
		"table.concat({1, 'b', 2.5}, ','), string.byte('A')}", "", "(foo|a|boot)"},
	{"tables", "local t = {3, 1, 2} table.sort(t) table.insert(t, 4) table.remove(t, 1) " +
		"return {#t, t[1], t[2], t[3], unpack({7, 8})}", "", ""},
	{"protected", "local ok, e = pcall(function() return nosuch end) local ok2, e2 = pcall(redis.call, 'get') " +
		"local ok3, e3 = pcall(error, {err = 'X y'}) return {e, e2, e3, tostring(ok)}", "", ""},
	{"missing", "\nreturn nosuch", "", ""},
	{"global", "x = 1", "", ""},
	{"library", "redis.call = nil", "", ""},
	{"missing number", "return redis.call()", "", ""},
	{"argument", "return redis.call('get', {})", "", ""},
	{"sha", "return redis.sha1hex(ARGV[1])", "", "{v}"},
	{"resp", "redis.setresp(3) local h = redis.call('hgetall', KEYS[1]) redis.call('del', 'none') " +
		"return {h.map and h.map.a or false, redis.call('get', 'none') == nil, " +
		"type(redis.call('zscore', KEYS[2], 'a'))}", "{h} {z}", ""},
	{"select", "redis.call('select', 1) redis.call('set', KEYS[1], 'x') return redis.call('dbsize') > 0", "{s}", ""},
	{"spread", "local r = redis.call('hmget', KEYS[1], 'a', 'b', 'c') return {type(r[1]), r[2], #r}", "{h}", ""},
	{"publish", "return redis.call('publish', KEYS[1], ARGV[1])", "{c}", "{v}"},
	{"loop", "local n = 0 for i = 1, 10 do if i % 2 == 0 then n = n + i end end while n > 20 do n = n - 1 end " +
		"for _, k in ipairs(KEYS) do n = n + redis.call('exists', k) end return n", "{k} {k}", ""},
	{"shebang", "#!lua flags=no-writes\nreturn redis.pcall('set', KEYS[1], 'x')", "{s}", ""},
	{"flags", "#!lua flags=allow-oom\nreturn redis.call('set', KEYS[1], 'x')", "{s}", ""},
	{"no flags", "#!lua\nreturn redis.call('set', KEYS[1], 'x')", "{s}", ""},
	{"second write", "redis.call('del', KEYS[1]) return redis.pcall('set', KEYS[1], 'x')", "{s}", ""},
	{"first write", "return redis.call('set', KEYS[1], 'x')", "{s}", ""},
	{"syntax of the shebang", "#!nolua\nreturn 1", "", ""},
}

// script draws a call of lockScripts or ownScripts.
func (g *generator) script() []string {
	s := g.scripts[g.IntN(len(g.scripts))]
	keys, args := g.expand(s.keys), g.expand(s.args)
	if g.IntN(40) == 0 && len(args) > 0 {
		// Never a short lease: its expiry would depend on a millisecond.
		args[g.IntN(len(args))] = []string{"foo", "-3", "", "9223372036854775807"}[g.IntN(4)]
	}
	name, what := "EVAL", s.text
	switch g.IntN(12) {
	case 0:
		name = "EVAL_RO"
	case 1:
		name, what = "EVALSHA", digestOf(s.text)
	case 2:
		name, what = "EVALSHA_RO", digestOf(s.text)
	case 3:
		return []string{"SCRIPT", "LOAD", s.text}
	}
	n := strconv.Itoa(len(keys))
	if g.IntN(100) == 0 {
		n = g.word("num")
	}
	return append(append([]string{name, what, n}, keys...), args...)
}

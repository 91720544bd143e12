package engine

import (
	"testing"
	"time"
)

func TestStringsAndHashes(t *testing.T) {
	w := newWorld(t)
	w.open("a:1").play(t, []step{
		{"SET a 1", "+OK"},
		{"GET a", "$1 1"},
		{"SET a 2 NX", "$-1"},
		{"SET a 2 XX GET", "$1 1"},
		{"INCRBY a 40", ":42"},
		{"SET a x EX 0", "-ERR invalid expire time in 'set' command"},
		{"HSET h f 1 g 2", ":2"},
		{"HINCRBY h f 5", ":6"},
		{"HGETALL h", "*4 $1 f $1 6 $1 g $1 2"},
		{"GET h", "-" + wrongType},
		{"HDEL h f g", ":2"},
		{"EXISTS h a", ":1"},
		{"nosuch x y", "-ERR unknown command 'nosuch', with args beginning with: 'x' 'y'"},
		{"get", "-ERR wrong number of arguments for 'get' command"},
		{"CLIENT TRACKING ON", "+OK"}, {"CLIENT GETREDIR", ":0"}, {"RESET", "+RESET"}, {"CLIENT GETREDIR", ":-1"},
		{"BITPOS a 1 9223372036854775807", ":-1"},
		{"BITCOUNT a 9223372036854775807 -1", ":0"},
		{"BITPOS a 0 -9223372036854775808 9223372036854775807 BIT", ":0"},
		{"INCRBYFLOAT f 10.5", "$4 10.5"},
		{"INCRBYFLOAT f 0.1", "$4 10.6"},
	})
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	u := w.open("a:1")
	u.play(t, []step{{"SET a 1 PX 100", "+OK"}, {"PTTL a", ":100"}, {"TTL a", ":0"}, {"EXPIRE a 10 LT", ":0"}})
	if at, ok := w.s.NextWake(); !ok || at.Sub(w.now) != 101*time.Millisecond {
		t.Errorf("next wake is at %v, %v", at.Sub(w.now), ok)
	}
	if got := w.takeEffects(); got != "SET a 1 PXAT 1700000000100" {
		t.Errorf("propagated %q", got)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	u.play(t, []step{{"GET a", "$1 1"}})
	w.now = w.now.Add(time.Millisecond)
	w.s.SetReplica(true)
	w.s.Wake()
	u.play(t, []step{{"GET a", "$-1"}, {"DBSIZE", ":1"}})
	w.s.SetReplica(false)
	w.s.Wake()
	u.play(t, []step{{"DBSIZE", ":0"}})
	if got := w.takeEffects(); got != "DEL a" {
		t.Errorf("propagated %q", got)
	}
}

func TestScripts(t *testing.T) {
	w := newWorld(t)
	w.open("a:1").play(t, []step{
		{`EVAL "return {1,2.9,'a',true,false,{3}}" 0`, "*6 :1 :2 $1 a :1 $-1 *1 :3"},
		{`EVAL "redis.call('set',KEYS[1],ARGV[1]) return redis.call('get',KEYS[1])" 1 k v`, "$1 v"},
		{`EVAL "return 'a'..1700000000000000 .. ('b'..2)" 0`, "$10 a1.7e+15b2"},
		{`EVAL "return x" 0`, "-ERR user_script:1: Script attempted to access nonexistent global variable 'x' " +
			"script: 03c387736bb5cc009ff35151572cee04677aa374, on @user_script:1."},
		{`EVAL "return redis.call('hget','k','f')" 0`, "-" + wrongType +
			" script: a06d314fc7cd89a48734e8cfd7a09d30934589e0, on @user_script:1."},
		{`EVALSHA 03c387736bb5cc009ff35151572cee04677aa375 0`, "-NOSCRIPT No matching script. Please use EVAL."},
	})
}

func TestPubSub(t *testing.T) {
	w := newWorld(t)
	a, b := w.open("a:1"), w.open("b:1")
	a.play(t, []step{{"SUBSCRIBE ch", "*3 $9 subscribe $2 ch :1"}, {"PSUBSCRIBE c*", "*3 $10 psubscribe $2 c* :2"}})
	b.play(t, []step{{"PUBLISH ch hello", ":2"}})
	if got := a.received(); got != "*3 $7 message $2 ch $5 hello *4 $8 pmessage $2 c* $2 ch $5 hello" {
		t.Errorf("the subscriber received %q", got)
	}
	a.play(t, []step{{"QUIT", "+OK"}})
	if !a.ended {
		t.Error("QUIT does not close the connection")
	}
	b.play(t, []step{{"PUBLISH ch hello", ":0"}})
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// step is a pair of scripts that gives one more guarantee than the previous step. The first is the bare lock; the last
// has the guarantees of lockchaos' mutex, without the rare branches of its scripts.
type step struct {
	what             string
	acquire, release string
	keys             int // of the release
}

// steps returns the scripts of an acquire and a release, each step with one more guarantee.
func steps() []step {
	const (
		set         = `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then return 0 end return 1`
		del         = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) return 0 end return 1`
		exists      = `if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end `
		notReleased = `if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 1 end `
		hset        = `redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'count', '1', 'h:' .. ARGV[1], '1') `
		expire      = `redis.call('PEXPIRE', KEYS[1], 30000) return 0`
		hget        = `local l = redis.call('HMGET', KEYS[1], 'count', 'h:' .. ARGV[1]) `
		marked      = `local l = redis.call('HMGET', KEYS[1], 'count', 'h:' .. ARGV[1], 'notify') `
		held        = `if not (l[1] == '1' and l[2]) then return 1 end `
		drop        = `redis.call('DEL', KEYS[1]) `
		tombstone   = `redis.call('SET', KEYS[2], '0', 'PX', 10000) redis.call('DEL', KEYS[1], KEYS[#KEYS]) `
		publish     = `if l[3] then redis.call('PUBLISH', KEYS[3], '0') end `
		always      = `redis.call('PUBLISH', KEYS[3], '0') `
		done        = `return 0`
		mint        = `local t = redis.call('TIME') redis.call('SET', KEYS[3], t[1] * 1000000 + t[2], 'PX', 86400000, 'GET') `
	)
	return []step{
		{"SET NX PX; GET and DEL: the bare lock", set, del, 1},
		{"a hash with owner, count and hold: reentrant", exists + hset + expire, hget + held + drop + done, 1},
		{"acquire checks for a tombstone: a late acquire has no effect", notReleased + hset + expire,
			hget + held + drop + done, 1},
		{"release writes a tombstone and removes the previous one: a repeated release has the same reply",
			notReleased + hset + expire, hget + held + tombstone + done, 3},
		{"a message if a waiter has set notify", notReleased + hset + expire, marked + held + tombstone + publish + done, 4},
		{"a message always", notReleased + hset + expire, marked + held + tombstone + always + done, 4},
		{"a fencing token", notReleased + mint + hset + expire, marked + held + tombstone + always + done, 4},
	}
}

// guarantees measures the server's CPU time for each guarantee of the mutex, without the
// network: many pairs in one pipeline.
func guarantees(ctx context.Context, srv *server, c config) error {
	all := steps()
	got := make([][]costOf, len(all))
	for range 2*c.rounds - 1 {
		for i, s := range all {
			used, err := s.cost(ctx, srv)
			if err != nil {
				return fmt.Errorf("%s: %w", s.what, err)
			}
			got[i] = append(got[i], costOf{server: used})
		}
	}
	var rows []string
	for i, s := range all {
		rows = append(rows, fmt.Sprintf("%s\t%s", s.what, tenths(got[i], func(c costOf) time.Duration { return c.server })))
	}
	table("Server CPU time of one acquire and release, pipelined; each row adds one guarantee",
		"guarantee\tserver", rows)
	return nil
}

// cost is the server's CPU time for one pair.
func (s step) cost(ctx context.Context, srv *server) (time.Duration, error) {
	const pairs, batch = 4000, 50
	if err := srv.reset(ctx); err != nil {
		return 0, err
	}
	acquire, release := redis.NewScript(s.acquire), redis.NewScript(s.release)
	for _, script := range []*redis.Script{acquire, release} {
		if err := script.Load(ctx, srv.rdb).Err(); err != nil {
			return 0, err
		}
	}
	before := srv.cpu(ctx)
	for n := 0; n < pairs; n += batch {
		pipe := srv.rdb.Pipeline()
		for i := range batch {
			lock, id := fmt.Sprint("job-", i), fmt.Sprintf("uE2rXhWqPz0aBcDe-%d", n+i)
			tombstone, last := "{"+lock+"}:tombstone:"+id, fmt.Sprintf("{%s}:tombstone:uE2rXhWqPz0aBcDe-%d", lock, n+i-batch)
			keys := []string{lock, tombstone, "{" + lock + "}:free", last}
			if s.keys == 3 { // no channel yet
				keys = slices.Delete(keys, 2, 3)
			}
			mine := keys[:min(s.keys, 2)]
			if strings.Contains(s.acquire, "KEYS[3]") {
				mine = []string{lock, tombstone, "{" + lock + "}:token"}
			} else if strings.Contains(s.acquire, "KEYS[2]") {
				mine = []string{lock, tombstone}
			}
			acquire.EvalSha(ctx, pipe, mine, id)
			release.EvalSha(ctx, pipe, keys[:s.keys], id)
		}
		cmds, err := pipe.Exec(ctx)
		if err != nil {
			return 0, err
		}
		for _, cmd := range cmds {
			if n, err := cmd.(*redis.Cmd).Int(); err != nil || n != 0 {
				return 0, fmt.Errorf("%v returned %d, %v: the scripts do not match", cmd.Args(), n, err)
			}
		}
	}
	return (srv.cpu(ctx) - before) / pairs, nil
}

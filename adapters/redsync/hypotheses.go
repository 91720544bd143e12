//go:build ignore

// Tries the hypotheses of docs/contributors/hypotheses.md about redsync: hypotheses ID RUNS HOST:PORT…, with three
// servers.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

const expiry = 8 * time.Second // the library's default

func main() {
	id, addresses := os.Args[1], os.Args[3:]
	runs, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	try := map[string]func(*servers) (bool, string){
		"S23": cancelled, "S24": lateSet, "S25": silent, "S26": extended}[id]
	if try == nil {
		log.Fatalf("unknown hypothesis %s", id)
	}
	seen := 0
	for range runs {
		s := connect(addresses)
		reproduced, what := try(s)
		s.close()
		fmt.Println(id, what)
		if reproduced {
			seen++
		}
	}
	fmt.Printf("%s reproduced in %d of %d runs\n", id, seen, runs)
}

// servers are three masters, each of which the library reaches through a relay.
type servers struct {
	direct []*goredislib.Client
	relays []*relay
	rs     *redsync.Redsync
	ctx    context.Context
	key    string
}

func connect(addresses []string) *servers {
	s := &servers{ctx: context.Background(), key: "hypothesis-" + rand.Text()}
	var pools []redis.Pool
	for _, address := range addresses {
		s.direct = append(s.direct, goredislib.NewClient(&goredislib.Options{Addr: address}))
		r := newRelay(address)
		s.relays = append(s.relays, r)
		pools = append(pools, goredis.NewPool(goredislib.NewClient(&goredislib.Options{Addr: r.listener.Addr().String()})))
	}
	s.rs = redsync.New(pools...)
	warm := s.rs.NewMutex("warm-" + s.key)
	if err := errors.Join(warm.Lock(), func() error { _, err := warm.Unlock(); return err }()); err != nil {
		log.Fatal(err)
	}
	return s
}

func (s *servers) close() {
	for _, r := range s.relays {
		r.pass()
		r.listener.Close()
	}
}

// left are the remaining times of the key on each server; negative: it has no such key.
func (s *servers) left() []time.Duration {
	var all []time.Duration
	for _, rdb := range s.direct {
		ttl, err := rdb.PTTL(context.Background(), s.key).Result()
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, ttl)
	}
	return all
}

// kept counts the servers that have the key.
func kept(left []time.Duration) int {
	n := 0
	for _, ttl := range left {
		if ttl > 0 {
			n++
		}
	}
	return n
}

// cancelled: a LockContext that one of three masters has granted is cancelled. The library releases with the context of
// the caller, so that nothing removes the key.
func cancelled(s *servers) (bool, string) {
	without, err := s.unanswered(func() {})
	if err == nil || without[0] > 0 {
		return false, fmt.Sprintf("without being cancelled, LockContext returned %v and left a key that expires in %v",
			err, without[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	s.key += "-cancelled"
	left, err := s.unanswered(cancel)
	return err != nil && left[0] > 0, fmt.Sprintf("LockContext was cancelled and returned an error (%q); the key that "+
		"the first master had set expires in %v; without being cancelled it was removed", err, left[0])
}

// unanswered tries a lock while two of three masters hold back requests, and calls then after the first has granted it.
func (s *servers) unanswered(then func()) ([]time.Duration, error) {
	s.relays[1].hold(math.MaxInt)
	s.relays[2].hold(math.MaxInt)
	done := make(chan error, 1)
	go func() {
		done <- s.rs.NewMutex(s.key, redsync.WithExpiry(time.Minute), redsync.WithTries(1)).LockContext(s.ctx)
	}()
	for kept(s.left()) == 0 {
		time.Sleep(time.Millisecond)
	}
	then()
	err := <-done
	s.relays[1].pass()
	s.relays[2].pass()
	return s.left(), err
}

// lateSet: with fail-fast, the SET that one connection to one master holds up arrives after the lock was released.
func lateSet(s *servers) (bool, string) {
	s.relays[2].hold(s.relays[2].connections())
	m := s.rs.NewMutex(s.key, redsync.WithFailFast(true), redsync.WithExpiry(time.Minute))
	if err := m.Lock(); err != nil {
		return false, fmt.Sprintf("Lock returned %v", err)
	}
	ok, err := m.Unlock()
	time.Sleep(time.Second) // the release of the last master
	s.relays[2].pass()
	time.Sleep(time.Second)
	left := s.left()
	return ok && err == nil && kept(left) > 0, fmt.Sprintf("Unlock returned %t, %v; two seconds after, the keys expire "+
		"in %v", ok, err, left)
}

// silent: one of three masters stops replying after connections were made.
func silent(s *servers) (bool, string) {
	s.relays[2].hold(math.MaxInt)
	m := s.rs.NewMutex(s.key, redsync.WithExpiry(expiry))
	start := time.Now()
	err := m.Lock()
	took := time.Since(start)
	limit := time.Duration(0.05 * float64(expiry)) // the library's timeout for each master
	return took > 2*limit, fmt.Sprintf("Lock returned %v after %v, its timeout for a master is %v; %v of %v remain",
		err, took.Round(time.Millisecond), limit, time.Until(m.Until()).Round(time.Millisecond), expiry)
}

// extended: a lock expires, another holds and releases it, and the first one extends it.
func extended(s *servers) (bool, string) {
	m := s.rs.NewMutex(s.key, redsync.WithExpiry(300*time.Millisecond), redsync.WithSetNXOnExtend())
	if err := m.Lock(); err != nil {
		return false, fmt.Sprintf("Lock returned %v", err)
	}
	other := s.rs.NewMutex(s.key)
	if err := other.Lock(); err != nil { // it asks until the lock has expired
		return false, fmt.Sprintf("Lock of the other returned %v", err)
	}
	if ok, err := other.Unlock(); !ok || err != nil {
		return false, fmt.Sprintf("Unlock of the other returned %t, %v", ok, err)
	}
	ok, err := m.Extend()
	return ok && err == nil, fmt.Sprintf("after another client held the lock and released it, Extend returned %t, %v", ok,
		err)
}

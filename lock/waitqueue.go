package lock

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// signals tells waiters that a lock may be free. All waiters of a client share
// one connection; a channel is subscribed while it has waiters, and a while
// longer.
//
// A message wakes the waiter that has waited longest; a renewed subscription
// wakes all, for messages may have been lost before it, and a new one all but those
// of whom one is enough: who waits for a mutex tells the next when he has had it. A
// waiter that leaves without using its wake-up passes it on. Messages only
// save time: every waiter asks again by itself in the end.
//
// One goroutine, the keeper, does all talking to the server but for reading
// (see keeper.go); the mutex guards memory only and is never held over it.
type waitQueues struct {
	rdb            redis.UniversalClient
	cluster        *redis.ClusterClient // rdb, if it is one
	bg             *background
	random         *random
	timeout        time.Duration
	wakeSubscriber chan struct{} // the keeper should look
	probing        atomic.Bool   // somebody asks whether messages can stay with the slot
	probed         chan struct{} // closed when the answer is there
	mode           atomic.Int32  // the answer, see letter

	mu       sync.Mutex
	channels map[string]*waitQueue
	count    atomic.Int32 // how many channels there are: most often none, and nobody has to look
	running  bool
}

// channel is one lock's line of waiters.
type waitQueue struct {
	channel     string
	sharded     bool      // its messages stay with the slot
	live        bool      // the server has confirmed the subscription
	wasLive     bool      // it was live before, and may have missed more than one message
	waiters     []*waiter // longest waiting first
	idleSince   time.Time
	holdWaiters int // how many places have a hold of their own to be told of
}

// place is one waiter in the line.
type waiter struct {
	queue   *waitQueue
	wake    chan struct{} // holds one wake-up
	hold    string        // told only of this hold, or with all others; empty: of any
	chained bool          // serves the others in the end: whoever is granted the lock tells the next
}

// linger is for how long a channel without waiters stays subscribed: a lock that
// was contended will be again, and to subscribe anew costs a round trip.
const linger = 5 * time.Second

func newWaitQueues(rdb redis.UniversalClient, bg *background, r *random, timeout time.Duration) *waitQueues {
	cluster, _ := rdb.(*redis.ClusterClient)
	return &waitQueues{
		rdb: rdb, cluster: cluster, bg: bg, random: r, timeout: timeout,
		wakeSubscriber: make(chan struct{}, 1),
		probed:         make(chan struct{}),
		channels:       make(map[string]*waitQueue),
	}
}

// join takes the last place in the line of channel name. The caller must ask
// for the lock after that, before it sleeps, and leave in the end.
func (s *waitQueues) join(name string) *waiter { return s.joinOn(name, false) }

// joinOn is join on a channel whose messages, with shard, stay with the slot.
func (s *waitQueues) joinOn(name string, shard bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil {
		ch = &waitQueue{channel: name, sharded: shard}
		s.channels[name] = ch
		s.count.Add(1)
		s.startSubscriber()
	}
	return ch.join()
}

// joinLive is join if the channel is subscribed already, else nil. It also
// says whether others were in the line before.
func (s *waitQueues) joinLive(name string) (p *waiter, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil || !ch.live {
		return nil, false
	}
	others = len(ch.waiters) > 0
	return ch.join(), others
}

// joinBehind is joinLive for a waiter who serves the others in the end: it
// takes a place behind others too who wait for the subscription.
func (s *waitQueues) joinBehind(name string) (p *waiter, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil || !ch.live && len(ch.waiters) == 0 {
		return nil, false
	}
	others = len(ch.waiters) > 0
	p = ch.join()
	p.chained = true
	return p, others
}

// joinLast is join for such a waiter, who need not ask again if it will be told:
// by those before it, or, where the server has not confirmed the subscription yet,
// when it does.
func (s *waitQueues) joinLast(name string) (p *waiter, served bool) {
	p = s.joinOn(name, s.notifyMode(context.Background()) == notifyShard)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.chained = true
	return p, p.queue.waiters[0] != p || !p.queue.live && !p.queue.wasLive
}

func (ch *waitQueue) join() *waiter {
	p := &waiter{queue: ch, wake: make(chan struct{}, 1)}
	ch.waiters = append(ch.waiters, p)
	return p
}

// leave gives a place up. A wake-up that was not used to take the lock is
// passed on to the next in the line.
func (s *waitQueues) leave(p *waiter, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := p.queue
	for i, other := range ch.waiters {
		if other == p {
			ch.waiters = append(ch.waiters[:i], ch.waiters[i+1:]...)
			break
		}
	}
	if p.hold != "" {
		ch.holdWaiters--
	}
	ch.idleSince = time.Now()
	select {
	case <-p.wake:
		if !used && p.hold == "" {
			ch.wakeOne()
		}
	default:
	}
}

// ahead is how many others stand before p in its line.
func (s *waitQueues) ahead(p *waiter) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(p.queue.waiters, p)
}

// waiting is how many stand in the line of channel name.
func (s *waitQueues) waiting(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[name]; ch != nil {
		return len(ch.waiters)
	}
	return 0
}

// tellOne wakes the longest waiting of those who are not awake already.
func (ch *waitQueue) wakeOne() {
	for _, p := range ch.waiters {
		if p.wakeUp() {
			return
		}
	}
}

// name makes p one that is told only of this hold, or with all others. It may
// be called again with another hold.
func (s *waitQueues) setHold(p *waiter, hold string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.hold == "" {
		p.queue.holdWaiters++
	}
	p.hold = hold
}

// tellNamed wakes the waiter for hold, if it is here.
func (ch *waitQueue) wakeHold(hold string) {
	for _, p := range ch.waiters {
		if p.hold == hold {
			p.wakeUp()
			return
		}
	}
}

// tellAll wakes everybody in the line.
func (ch *waitQueue) wakeAll() {
	for _, p := range ch.waiters {
		p.wakeUp()
	}
}

// toSome begins the payload of a message that is meant for as many waiters as
// the number that follows.
const wakeSomePrefix = "+"

// tellSome wakes so many waiters, or one if that is not a number.
func (ch *waitQueue) wakeSome(number string) {
	n, _ := strconv.Atoi(number)
	for range min(max(n, 1), len(ch.waiters)) {
		ch.wakeOne()
	}
}

// toAll is the payload of a message that is meant for every waiter.
const wakeAllPayload = "*"

// message is called when the server says that the lock is free. What it says
// is either toAll, or the id of the hold that it is meant for, or else anything:
// that is for whoever has waited longest.
func (s *waitQueues) message(name, says string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	switch {
	case ch == nil:
	case says == wakeAllPayload:
		ch.wakeAll()
	case strings.HasPrefix(says, wakeSomePrefix):
		ch.wakeSome(says[len(wakeSomePrefix):])
	case ch.holdWaiters > 0:
		ch.wakeHold(says)
	default:
		ch.wakeOne()
	}
}

// confirmed is called when the server has confirmed a subscription: whoever
// asked before that may have missed a message.
func (s *waitQueues) confirmed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil {
		return
	}
	first := !ch.wasLive
	ch.live, ch.wasLive = true, true
	if !first {
		ch.wakeAll()
		return
	}
	chained := false
	for _, p := range ch.waiters {
		if p.chained && chained {
			continue
		}
		chained = chained || p.chained
		p.wakeUp()
	}
}

// tell wakes p, and is false if it is awake already.
func (p *waiter) wakeUp() bool {
	select {
	case p.wake <- struct{}{}:
		return true
	default:
		return false
	}
}

// broken is called when a connection has gone, and its subscriptions with it.
func (s *waitQueues) broken(names map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range names {
		if ch := s.channels[name]; ch != nil {
			ch.live = false
		}
	}
}

// wanted are the channels to be subscribed, and whether their messages stay with the
// slot; those long without waiters are dropped.
func (s *waitQueues) wanted(now time.Time) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]bool, len(s.channels))
	for name, ch := range s.channels {
		if len(ch.waiters) == 0 && now.Sub(ch.idleSince) > linger {
			delete(s.channels, name)
			s.count.Add(-1)
			continue
		}
		names[name] = ch.sharded
	}
	return names
}

// look makes the keeper look at what is wanted, and starts it the first time.
// The caller holds the mutex.
func (s *waitQueues) startSubscriber() {
	if !s.running {
		k := &subscriber{queues: s, conns: make(map[string]*subConn)}
		s.running = s.bg.start(k.run)
	}
	s.notifySubscriber()
}

// poke makes the keeper look.
func (s *waitQueues) notifySubscriber() {
	select {
	case s.wakeSubscriber <- struct{}{}:
	default:
	}
}

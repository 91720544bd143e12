package lock

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitQueues wakes waiters when a lock may be free. All waiters of a client share
// one connection; a channel is subscribed while it has waiters, and for
// subscriptionLinger after that.
//
// A message wakes the waiter that has waited longest. A renewed subscription wakes all waiters, because messages may
// have been lost; a new one wakes all except chained waiters, of whom it wakes one. A waiter that leaves without using
// its wake-up passes it on. Messages only save time: every waiter also retries after a while.
//
// One goroutine, the subscriber, does all I/O except reading; the mutex is never
// held during I/O.
type waitQueues struct {
	rdb      redis.UniversalClient
	cluster  *redis.ClusterClient // rdb, if it is one
	bg       *background
	random   *random
	timeout  time.Duration
	changed  chan struct{} // the subscriber has something to do
	probing  atomic.Bool   // see probe
	probed   chan struct{} // closed when the probe is done
	mode     atomic.Int32  // what the probe has found
	reported atomic.Bool   // a refusal was reported, and no subscription was confirmed since

	report func(channel string, err error)            // that waiters poll, because a subscription was refused
	order  func(server string, command func() string) // see Options.Order; may be nil

	mu       sync.Mutex
	channels map[string]*waitQueue
	count    atomic.Int32 // of channels; usually 0, so that the mutex need not be locked
	running  bool
}

// waitQueue is the waiters for one channel.
type waitQueue struct {
	channel   string
	sharded   bool      // its messages stay with the cluster slot
	live      bool      // the server has confirmed the subscription
	wasLive   bool      // it did so before, so that more than one message may have been lost
	denied    time.Time // when the server last refused the subscription; zero: it has not
	waiters   []*waiter // longest waiting first
	idleSince time.Time
	holds     int // waiters that are woken by their hold
}

// waiter is one entry of a wait queue.
type waiter struct {
	queue   *waitQueue
	wake    chan struct{} // holds one wake-up
	first   chan struct{} // closed when it is the first in its queue
	due     time.Time     // set before first is closed: when it has to send a request at the latest; zero: when it wants
	hold    string        // woken only by messages for this hold or for all; empty: by any
	chained bool          // the one of the chained waiters that is granted the lock wakes the next
	asleep  bool          // it waits for its next wake-up; false from that on, until it has sent its request
	next    call          // if prepared
	handed  *handed       // a request that was sent for it, and that it has not seen; nil: none was

	prepared bool // while it sleeps, its next request may be sent for it
}

// channel is the channel of the queue of w.
func (w *waiter) channel() string { return w.queue.channel }

// subscriptionLinger is for how long a channel without waiters stays subscribed: a
// lock that was contended will be again, and to subscribe costs a round trip.
const subscriptionLinger = 5 * time.Second

// Payloads of messages. Any other is the id of the hold that it is for, or, where
// no waiter is woken by its hold, for the waiter that has waited longest.
const (
	wakeAllPayload = "*"
	wakeSomePrefix = "+" // before the number of waiters to wake
)

// newWaitQueues are those of the servers of rdb. timeout limits each exchange with them; order is called when something
// happens that no request causes, and may be nil.
func newWaitQueues(rdb redis.UniversalClient, bg *background, r *random, timeout time.Duration,
	order func(server string, command func() string)) *waitQueues {
	cluster, _ := rdb.(*redis.ClusterClient)
	return &waitQueues{
		rdb: rdb, cluster: cluster, bg: bg, random: r, timeout: timeout, order: order,
		changed:  make(chan struct{}, 1),
		probed:   make(chan struct{}),
		channels: make(map[string]*waitQueue),
	}
}

// join appends a waiter to the queue of a channel. The caller must send a request after that and before it sleeps,
// and must call leave in the end. A chained waiter need not send that request if it relies on another wake-up: by the
// waiters before it, or, if the first subscription is not confirmed yet, by the confirmation.
func (s *waitQueues) join(channel string, sharded, chained bool) (w *waiter, relies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		q = &waitQueue{channel: channel, sharded: sharded}
		s.channels[channel] = q
		s.count.Add(1)
		s.startSubscriber()
	}
	w = q.join(chained)
	return w, chained && (q.waiters[0] != w || !q.live && !q.wasLive)
}

// joinExisting is join if the channel is subscribed, or, for a chained waiter, if
// others wait for that, and else nil. It also reports whether there were others.
func (s *waitQueues) joinExisting(channel string, chained bool) (w *waiter, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		return nil, false
	}
	others = len(q.waiters) > 0
	if !q.live && !(chained && others) {
		return nil, false
	}
	return q.join(chained), others
}

func (q *waitQueue) join(chained bool) *waiter {
	w := &waiter{queue: q, wake: make(chan struct{}, 1), first: make(chan struct{}), chained: chained}
	q.waiters = append(q.waiters, w)
	if q.waiters[0] == w {
		close(w.first)
	}
	return w
}

// leave removes a waiter. A wake-up that it has not used goes to the next, unless
// the waiter was served by what it was woken for. The next one sends a request when the lease of what the first was
// served with may have ended, at due; zero: it does not.
func (s *waitQueues) leave(w *waiter, served bool, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := w.queue
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		if i == 0 && len(q.waiters) > 0 {
			q.waiters[0].due = due
			close(q.waiters[0].first)
		}
	}
	if w.hold != "" {
		q.holds--
	}
	q.idleSince = time.Now()
	select {
	case <-w.wake:
		if !served && w.hold == "" {
			wakeSome(q.waiters, 1)
		}
	default:
	}
}

// passOn wakes the next waiter behind w that is not awake already.
func (s *waitQueues) passOn(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(w.queue.waiters, w); i >= 0 {
		wakeSome(w.queue.waiters[i+1:], 1)
	}
}

// fallAsleep is called before w waits for a wake-up, unless it has one already. If prepared, next may be sent for it.
func (s *waitQueues) fallAsleep(w *waiter, next call, prepared bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asleep = len(w.wake) == 0
	w.next, w.prepared = next, prepared
}

// wakeAll wakes all waiters of the queue of w.
func (s *waitQueues) wakeAll(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wakeSome(w.queue.waiters, len(w.queue.waiters))
}

// ahead is how many others are before w in its queue.
func (s *waitQueues) ahead(w *waiter) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(w.queue.waiters, w)
}

// waiting is how many waiters the queue of a channel has.
func (s *waitQueues) waiting(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.channels[channel]; q != nil {
		return len(q.waiters)
	}
	return 0
}

// asleepIn is how many waiters of a channel sleep, of how many, and whether the server has confirmed its subscription.
func (s *waitQueues) asleepIn(channel string) (n, of int, subscribed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		return 0, 0, false
	}
	for _, w := range q.waiters {
		if w.asleep {
			n++
		}
	}
	return n, len(q.waiters), q.live
}

// inUse reports whether a channel has waiters, or had some of late. It does not lock the mutex.
func (s *waitQueues) inUse() bool { return s.count.Load() > 0 }

// setHold makes w one that is woken only by messages for this hold or for all. It
// may be called again with another hold.
func (s *waitQueues) setHold(w *waiter, hold string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.hold == "" {
		w.queue.holds++
	}
	w.hold = hold
}

// wakeSome wakes the n first waiters that are not awake already.
func wakeSome(waiters []*waiter, n int) {
	for _, w := range waiters {
		if n == 0 {
			return
		}
		if w.wakeUp() {
			n--
		}
	}
}

// wakeUp reports false if w is awake already.
func (w *waiter) wakeUp() bool {
	w.asleep = false
	select {
	case w.wake <- struct{}{}:
		return true
	default:
		return false
	}
}

// message is called with each message of a channel.
func (s *waitQueues) message(channel, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		return
	}
	number, some := strings.CutPrefix(payload, wakeSomePrefix)
	switch {
	case payload == wakeAllPayload:
		wakeSome(q.waiters, len(q.waiters))
	case some:
		n, _ := strconv.Atoi(number)
		wakeSome(q.waiters, max(n, 1))
	case q.holds > 0:
		if i := slices.IndexFunc(q.waiters, func(w *waiter) bool { return w.hold == payload }); i >= 0 {
			q.waiters[i].wakeUp()
		}
	default:
		wakeSome(q.waiters, 1)
	}
}

// confirmed is called when the server has confirmed a subscription: messages since
// the waiters sent their requests may have been lost.
func (s *waitQueues) confirmed(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		return
	}
	s.reported.Store(false)
	first := !q.wasLive
	q.live, q.wasLive, q.denied = true, true, time.Time{}
	chained := false
	for _, w := range q.waiters {
		if first && w.chained && chained {
			continue
		}
		chained = chained || w.chained
		w.wakeUp()
	}
}

// refusedFor is for how long a subscription that was refused for good, as for lack of rights, is not tried
// again.
const refusedFor = time.Minute

// refused is called when the server refuses a subscription for good: the waiters poll.
func (s *waitQueues) refused(channel string, err error) {
	s.mu.Lock()
	if q := s.channels[channel]; q != nil {
		q.live = false
		q.deny(time.Now())
	}
	s.mu.Unlock()
	if !s.reported.Swap(true) {
		s.report(channel, err)
	}
}

// deny makes waiters poll, because the server refused the subscription at t. It wakes those that sleep because they
// relied on messages: every one if waiters are woken by their hold, else the first, which polls for the others too.
func (q *waitQueue) deny(t time.Time) {
	q.denied = t
	n := 1
	if q.holds > 0 {
		n = len(q.waiters)
	}
	wakeSome(q.waiters, n)
}

// pollUntil makes the waiters of channels poll until then: they are not subscribed, because the server refuses others.
func (s *waitQueues) pollUntil(channels map[string]bool, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range channels {
		if q := s.channels[channel]; q != nil {
			q.deny(until.Add(-refusedFor))
		}
	}
}

// polls reports whether no message will come to w.
func (s *waitQueues) polls(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !w.queue.denied.IsZero()
}

// broken is called when a connection has failed, and its subscriptions with it.
func (s *waitQueues) broken(channels map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range channels {
		if q := s.channels[channel]; q != nil {
			q.live = false
		}
	}
}

// wanted are the channels to be subscribed, and whether their messages stay with
// the slot; those that have had no waiters for a while are dropped.
func (s *waitQueues) wanted(now time.Time) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	channels := make(map[string]bool, len(s.channels))
	for channel, q := range s.channels {
		if len(q.waiters) == 0 && now.Sub(q.idleSince) > subscriptionLinger {
			delete(s.channels, channel)
			s.count.Add(-1)
			continue
		}
		if q.denied.IsZero() || now.Sub(q.denied) > refusedFor {
			channels[channel] = q.sharded
		}
	}
	return channels
}

// wants reports whether a channel has a queue.
func (s *waitQueues) wants(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[channel] != nil
}

// startSubscriber makes the subscriber look at what is wanted, and starts it the
// first time. The caller holds the mutex.
func (s *waitQueues) startSubscriber() {
	if !s.running {
		k := &subscriber{queues: s, conns: make(map[string]*subConn), retries: make(map[string]*redial)}
		s.running = s.bg.start(k.run)
	}
	s.notifySubscriber()
}

// notifySubscriber makes the subscriber look at what is wanted.
func (s *waitQueues) notifySubscriber() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

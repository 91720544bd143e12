// Package wait has the waiters of a lock client: a queue for each channel, one subscription for all of them, and the
// request that is sent for the first of a queue when a goroutine of the same client releases the lock. The owner of
// a waiter decides which requests it sends and how long it waits.
//
// Read [Queues] first, then [Waiter].
package wait

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/random"
	"github.com/lockchaos/lockchaos/lock/internal/tasks"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Queues wakes waiters when a lock may be free. All waiters of a client share
// one connection; a channel is subscribed while it has waiters, and for
// subscriptionLinger after that.
//
// A message wakes the waiter that has waited longest. A renewed subscription wakes all waiters, because messages may
// have been lost; a new one wakes all except chained waiters, of whom it wakes one. A waiter that leaves without using
// its wake-up passes it on. Messages only save time: every waiter also retries after a while.
//
// One goroutine, the subscriber, does all I/O except reading; the mutex is never
// held during I/O.
type Queues struct {
	rdb       redis.UniversalClient
	cluster   *redis.ClusterClient // rdb, if it is one
	bg        *tasks.Group
	random    *random.Source
	timeout   time.Duration
	changed   chan struct{} // the subscriber has something to do
	unsharded atomic.Bool   // a server of the cluster has no SSUBSCRIBE
	reported  atomic.Bool   // a refusal was reported, and no subscription was confirmed since

	Report func(channel string, err error)            // that waiters poll, because a subscription was refused
	order  func(server string, command func() string) // see Options.Order; may be nil

	mu       sync.Mutex
	channels map[string]*queue
	count    atomic.Int32 // of channels; usually 0, so that the mutex need not be locked
	running  bool
}

// queue is the waiters for one channel.
type queue struct {
	channel   string
	live      bool      // the server has confirmed the subscription
	wasLive   bool      // it did so before, so that more than one message may have been lost
	denied    time.Time // when the server last refused the subscription; zero: it has not
	waiters   []*Waiter // longest waiting first
	idleSince time.Time
	holds     int // waiters that are woken by their hold
}

// subscriptionLinger is for how long a channel without waiters stays subscribed: a
// lock that was contended will be again, and to subscribe costs a round trip.
const subscriptionLinger = 5 * time.Second

// Payloads of messages. Any other is the id of a hold, and wakes its waiter. Where no waiter waits for its hold, it
// wakes the first waiter, and may be the number of clients that it reaches.
const (
	wakeAllPayload = "*"
	wakeSomePrefix = "+" // before the number of waiters to wake
)

// NewQueues returns the wait queues of a client of rdb. timeout limits each exchange with a server; order is
// called for events that no request causes, and may be nil.
func NewQueues(rdb redis.UniversalClient, bg *tasks.Group, r *random.Source, timeout time.Duration,
	order func(server string, command func() string)) *Queues {
	cluster, _ := rdb.(*redis.ClusterClient)
	return &Queues{
		rdb: rdb, cluster: cluster, bg: bg, random: r, timeout: timeout, order: order,
		changed:  make(chan struct{}, 1),
		channels: make(map[string]*queue),
	}
}

// Join appends a waiter to the queue of a channel. The caller must send a request after that and before it sleeps,
// and must call leave in the end. A chained waiter need not send that request if it relies on another wake-up: by the
// waiters before it, or, if the first subscription is not confirmed yet, by the confirmation.
func (s *Queues) Join(channel string, chained bool) (w *Waiter, relies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		q = &queue{channel: channel}
		s.channels[channel] = q
		s.count.Add(1)
		s.startSubscriber()
	}
	w = q.join(chained)
	return w, chained && (q.waiters[0] != w || !q.live && !q.wasLive)
}

// JoinExisting is [Queues.Join] if the channel is subscribed, or, for a chained waiter, if
// others wait for that; otherwise it returns nil. It also reports whether there were others.
func (s *Queues) JoinExisting(channel string, chained bool) (w *Waiter, others bool) {
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

func (q *queue) join(chained bool) *Waiter {
	w := &Waiter{queue: q, Wake: make(chan time.Duration, 1), First: make(chan struct{}), chained: chained}
	q.waiters = append(q.waiters, w)
	if q.waiters[0] == w {
		close(w.First)
	}
	return w
}

// Leave removes a waiter. A wake-up that it has not used goes to the next, unless that wake-up served the waiter. The
// next one sends a request when the lease of the first one's grant may have ended, at due; zero: it does not.
func (s *Queues) Leave(w *Waiter, served bool, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := w.queue
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		if i == 0 && len(q.waiters) > 0 {
			q.waiters[0].Due = due
			close(q.waiters[0].First)
		}
	}
	if w.Hold != "" {
		q.holds--
	}
	q.idleSince = time.Now()
	select {
	case <-w.Wake:
		if !served && w.Hold == "" {
			wakeSome(q.waiters, 1, 0)
		}
	default:
	}
}

// PassOn wakes the next waiter behind w that is not awake already.
func (s *Queues) PassOn(w *Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(w.queue.waiters, w); i >= 0 {
		wakeSome(w.queue.waiters[i+1:], 1, 0)
	}
}

// FallAsleep is called before w waits for a wake-up, unless it has one already. If prepared, next may be sent for it.
func (s *Queues) FallAsleep(w *Waiter, next wire.Call, prepared bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asleep = len(w.Wake) == 0 || w.delayed
	w.next, w.prepared = next, prepared
}

// WakeAll wakes all waiters of the queue of w.
func (s *Queues) WakeAll(w *Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wakeSome(w.queue.waiters, len(w.queue.waiters), 0)
}

// Ahead is how many others are before w in its queue.
func (s *Queues) Ahead(w *Waiter) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(w.queue.waiters, w)
}

// Waiting is how many waiters the queue of a channel has.
func (s *Queues) Waiting(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.channels[channel]; q != nil {
		return len(q.waiters)
	}
	return 0
}

// AsleepIn is how many waiters of a channel sleep, of how many, and whether the server has confirmed its subscription.
func (s *Queues) AsleepIn(channel string) (n, of int, subscribed bool) {
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

// InUse reports whether a channel has waiters or recently had some. It does not lock the mutex.
func (s *Queues) InUse() bool { return s.count.Load() > 0 }

// SetHold lets only messages for this hold, or for all, wake w. It may be called again with another hold.
func (s *Queues) SetHold(w *Waiter, hold string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Hold == "" {
		w.queue.holds++
	}
	w.Hold = hold
}

// message is called with each message of a channel.
func (s *Queues) message(channel, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil {
		return
	}
	number, some := strings.CutPrefix(payload, wakeSomePrefix)
	switch {
	case payload == wakeAllPayload:
		wakeSome(q.waiters, len(q.waiters), 0)
	case some:
		n, _ := strconv.Atoi(number)
		wakeSome(q.waiters, max(n, 1), 0)
	case q.holds > 0:
		if i := slices.IndexFunc(q.waiters, func(w *Waiter) bool { return w.Hold == payload }); i >= 0 {
			q.waiters[i].WakeUp(0)
		}
	default:
		n, _ := strconv.Atoi(payload)
		longest := herdDelay(n)
		wakeSome(q.waiters, 1, s.random.Between(0, longest))
		if longest > 0 && len(q.waiters) == 0 { // a release is to count only clients with waiters
			q.idleSince = time.Time{}
			s.notifySubscriber()
		}
	}
}

// confirmed is called when the server has confirmed a subscription: messages since
// the waiters sent their requests may have been lost.
func (s *Queues) confirmed(channel string) {
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
		w.WakeUp(0)
	}
}

// refusedFor is for how long a subscription that was refused for good, as for lack of rights, is not tried
// again.
const refusedFor = time.Minute

// refused is called when the server refuses a subscription for good: the waiters poll.
func (s *Queues) refused(channel string, err error) {
	s.mu.Lock()
	if q := s.channels[channel]; q != nil {
		q.live = false
		q.deny(time.Now())
	}
	s.mu.Unlock()
	if !s.reported.Swap(true) {
		s.Report(channel, err)
	}
}

// deny makes waiters poll, because the server refused the subscription at t. It wakes the waiters that sleep because
// they relied on messages: every one if waiters are woken by their hold, else the first, which polls for the others
// too.
func (q *queue) deny(t time.Time) {
	q.denied = t
	n := 1
	if q.holds > 0 {
		n = len(q.waiters)
	}
	wakeSome(q.waiters, n, 0)
}

// pollUntil makes the waiters of channels poll until then: they are not subscribed, because the server refuses others.
func (s *Queues) pollUntil(channels map[string]bool, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range channels {
		if q := s.channels[channel]; q != nil {
			q.deny(until.Add(-refusedFor))
		}
	}
}

// Polls reports whether no message will come to w.
func (s *Queues) Polls(w *Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !w.queue.denied.IsZero()
}

// broken is called when a connection has failed, and its subscriptions with it.
func (s *Queues) broken(channels map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel := range channels {
		if q := s.channels[channel]; q != nil {
			q.live = false
		}
	}
}

// wanted are the channels to be subscribed; channels without waiters for a while are dropped.
func (s *Queues) wanted(now time.Time) map[string]bool {
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
			channels[channel] = true
		}
	}
	return channels
}

// wants reports whether a channel has a queue.
func (s *Queues) wants(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[channel] != nil
}

// startSubscriber makes the subscriber look at the wanted channels, and starts it the first time. The caller holds the
// mutex.
func (s *Queues) startSubscriber() {
	if !s.running {
		k := &subscriber{queues: s, conns: make(map[string]*subConn), retries: make(map[string]*redial)}
		s.running = s.bg.Start(k.run)
	}
	s.notifySubscriber()
}

// notifySubscriber makes the subscriber look at the wanted channels.
func (s *Queues) notifySubscriber() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

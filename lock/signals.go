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
type signals struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // rdb, if it is one
	bg      *background
	random  *random
	timeout time.Duration
	changed chan struct{} // the keeper should look
	asked   atomic.Bool   // somebody asks whether messages can stay with the slot
	told    chan struct{} // closed when the answer is there
	shards  atomic.Int32  // the answer, see letter

	mu       sync.Mutex
	channels map[string]*channel
	known    atomic.Int32 // how many channels there are: most often none, and nobody has to look
	running  bool
}

// channel is one lock's line of waiters.
type channel struct {
	name   string
	shard  bool     // its messages stay with the slot
	live   bool     // the server has confirmed the subscription
	was    bool     // it was live before, and may have missed more than one message
	places []*place // longest waiting first
	left   time.Time
	named  int // how many places have a hold of their own to be told of
}

// place is one waiter in the line.
type place struct {
	channel *channel
	told    chan struct{} // holds one wake-up
	hold    string        // told only of this hold, or with all others; empty: of any
	chain   bool          // serves the others in the end: whoever is granted the lock tells the next
}

// linger is for how long a channel without waiters stays subscribed: a lock that
// was contended will be again, and to subscribe anew costs a round trip.
const linger = 5 * time.Second

func newSignals(rdb redis.UniversalClient, bg *background, r *random, timeout time.Duration) *signals {
	cluster, _ := rdb.(*redis.ClusterClient)
	return &signals{
		rdb: rdb, cluster: cluster, bg: bg, random: r, timeout: timeout,
		changed:  make(chan struct{}, 1),
		told:     make(chan struct{}),
		channels: make(map[string]*channel),
	}
}

// join takes the last place in the line of channel name. The caller must ask
// for the lock after that, before it sleeps, and leave in the end.
func (s *signals) join(name string) *place { return s.joinOn(name, false) }

// joinOn is join on a channel whose messages, with shard, stay with the slot.
func (s *signals) joinOn(name string, shard bool) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil {
		ch = &channel{name: name, shard: shard}
		s.channels[name] = ch
		s.known.Add(1)
		s.look()
	}
	return ch.join()
}

// joinLive is join if the channel is subscribed already, else nil. It also
// says whether others were in the line before.
func (s *signals) joinLive(name string) (p *place, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil || !ch.live {
		return nil, false
	}
	others = len(ch.places) > 0
	return ch.join(), others
}

// joinBehind is joinLive for a waiter who serves the others in the end: it
// takes a place behind others too who wait for the subscription.
func (s *signals) joinBehind(name string) (p *place, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil || !ch.live && len(ch.places) == 0 {
		return nil, false
	}
	others = len(ch.places) > 0
	p = ch.join()
	p.chain = true
	return p, others
}

// joinLast is join for such a waiter, who need not ask again if it will be told:
// by those before it, or, where the server has not confirmed the subscription yet,
// when it does.
func (s *signals) joinLast(name string) (p *place, served bool) {
	p = s.joinOn(name, s.letter(context.Background()) == toShard)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.chain = true
	return p, p.channel.places[0] != p || !p.channel.live && !p.channel.was
}

func (ch *channel) join() *place {
	p := &place{channel: ch, told: make(chan struct{}, 1)}
	ch.places = append(ch.places, p)
	return p
}

// leave gives a place up. A wake-up that was not used to take the lock is
// passed on to the next in the line.
func (s *signals) leave(p *place, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := p.channel
	for i, other := range ch.places {
		if other == p {
			ch.places = append(ch.places[:i], ch.places[i+1:]...)
			break
		}
	}
	if p.hold != "" {
		ch.named--
	}
	ch.left = time.Now()
	select {
	case <-p.told:
		if !used && p.hold == "" {
			ch.tellOne()
		}
	default:
	}
}

// ahead is how many others stand before p in its line.
func (s *signals) ahead(p *place) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(p.channel.places, p)
}

// waiting is how many stand in the line of channel name.
func (s *signals) waiting(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[name]; ch != nil {
		return len(ch.places)
	}
	return 0
}

// tellOne wakes the longest waiting of those who are not awake already.
func (ch *channel) tellOne() {
	for _, p := range ch.places {
		if p.tell() {
			return
		}
	}
}

// name makes p one that is told only of this hold, or with all others. It may
// be called again with another hold.
func (s *signals) name(p *place, hold string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.hold == "" {
		p.channel.named++
	}
	p.hold = hold
}

// tellNamed wakes the waiter for hold, if it is here.
func (ch *channel) tellNamed(hold string) {
	for _, p := range ch.places {
		if p.hold == hold {
			p.tell()
			return
		}
	}
}

// tellAll wakes everybody in the line.
func (ch *channel) tellAll() {
	for _, p := range ch.places {
		p.tell()
	}
}

// toSome begins the payload of a message that is meant for as many waiters as
// the number that follows.
const toSome = "+"

// tellSome wakes so many waiters, or one if that is not a number.
func (ch *channel) tellSome(number string) {
	n, _ := strconv.Atoi(number)
	for range min(max(n, 1), len(ch.places)) {
		ch.tellOne()
	}
}

// toAll is the payload of a message that is meant for every waiter.
const toAll = "*"

// message is called when the server says that the lock is free. What it says
// is either toAll, or the id of the hold that it is meant for, or else anything:
// that is for whoever has waited longest.
func (s *signals) message(name, says string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	switch {
	case ch == nil:
	case says == toAll:
		ch.tellAll()
	case strings.HasPrefix(says, toSome):
		ch.tellSome(says[len(toSome):])
	case ch.named > 0:
		ch.tellNamed(says)
	default:
		ch.tellOne()
	}
}

// confirmed is called when the server has confirmed a subscription: whoever
// asked before that may have missed a message.
func (s *signals) confirmed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil {
		return
	}
	first := !ch.was
	ch.live, ch.was = true, true
	if !first {
		ch.tellAll()
		return
	}
	chained := false
	for _, p := range ch.places {
		if p.chain && chained {
			continue
		}
		chained = chained || p.chain
		p.tell()
	}
}

// tell wakes p, and is false if it is awake already.
func (p *place) tell() bool {
	select {
	case p.told <- struct{}{}:
		return true
	default:
		return false
	}
}

// broken is called when a connection has gone, and its subscriptions with it.
func (s *signals) broken(names map[string]bool) {
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
func (s *signals) wanted(now time.Time) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]bool, len(s.channels))
	for name, ch := range s.channels {
		if len(ch.places) == 0 && now.Sub(ch.left) > linger {
			delete(s.channels, name)
			s.known.Add(-1)
			continue
		}
		names[name] = ch.shard
	}
	return names
}

// look makes the keeper look at what is wanted, and starts it the first time.
// The caller holds the mutex.
func (s *signals) look() {
	if !s.running {
		k := &keeper{signals: s, lines: make(map[string]*line)}
		s.running = s.bg.start(k.run)
	}
	s.poke()
}

// poke makes the keeper look.
func (s *signals) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

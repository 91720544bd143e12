package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// How a waiter wants to be told, as a mark in the hash of a lock says it.
const (
	notifyPublish = "w" // PUBLISH: in a cluster to all of its nodes (redisson#3349)
	notifyShard   = "W" // SPUBLISH: to the nodes that have the slot (Redis 7.0)
)

// What is known of whether messages to waiters for a mutex can stay with the slot.
const (
	modeUnknown int32 = iota
	modePublish
	modeShard
)

// letter is how waiters for a mutex want to be told. The first who waits has
// a cluster asked whether it can tell the nodes of a slot alone; one that does not
// answer within a second is taken for one that cannot, for as long as the client lives.
func (s *waitQueues) notifyMode(ctx context.Context) string {
	if s.cluster == nil {
		return notifyPublish
	}
	if s.mode.Load() == modeUnknown {
		s.probe(ctx)
	}
	if s.mode.Load() == modeShard {
		return notifyShard
	}
	return notifyPublish
}

// learn waits for the answer, and has the question asked if nobody has.
func (s *waitQueues) probe(ctx context.Context) {
	if s.probing.CompareAndSwap(false, true) {
		started := s.bg.start(func() {
			defer close(s.probed)
			list, err := s.cluster.Do(s.bg.ctx, "COMMAND", "INFO", "SSUBSCRIBE", "SPUBLISH").Slice()
			if err == nil && len(list) == 2 && list[0] != nil && list[1] != nil {
				s.mode.CompareAndSwap(modeUnknown, modeShard)
			}
		})
		if !started { // the client is closed
			close(s.probed)
		}
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-s.probed:
	case <-timer.C:
	case <-ctx.Done():
		return // he does not wait for the lock any more either
	}
	s.mode.CompareAndSwap(modeUnknown, modePublish)
}

// wantedAt are the channels to be subscribed, by the address of the master whose
// slots they are in; empty: of whatever server, for messages that go everywhere.
func (s *waitQueues) wantedAt(ctx context.Context, now time.Time) (map[string]map[string]bool, error) {
	out := make(map[string]map[string]bool)
	var failed error
	for name, sharded := range s.wanted(now) {
		at := ""
		if sharded {
			master, err := s.cluster.MasterForKey(ctx, name)
			if err != nil {
				failed = err
				continue
			}
			at = master.Options().Addr
		}
		if out[at] == nil {
			out[at] = make(map[string]bool)
		}
		out[at][name] = true
	}
	return out, failed
}

// open makes a connection for channels of one master; nothing is subscribed yet.
func (s *waitQueues) open(ctx context.Context, at string, wanted map[string]bool) (*redis.PubSub, error) {
	if at == "" {
		return s.rdb.Subscribe(ctx), nil
	}
	master, err := s.cluster.MasterForKey(ctx, names(wanted)[0])
	if err != nil {
		return nil, err
	}
	return master.SSubscribe(ctx), nil
}

// wants is whether anybody wants to hear of that channel.
func (s *waitQueues) wants(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[name] != nil
}

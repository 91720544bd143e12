package wait

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// NotifyMode is how waiters for a mutex are notified, as a mark in its hash says it.
type NotifyMode byte

const (
	NotifyNone    NotifyMode = 0
	notifyPublish NotifyMode = 'w' // PUBLISH: in a cluster to all of its nodes (redisson#3349)
	NotifyShard   NotifyMode = 'W' // SPUBLISH: to the nodes of the slot (Redis 7.0)
)

// What is known of a cluster.
const (
	modeUnknown int32 = iota
	modePublish
	modeShard
)

// NotifyMode is how waiters of this client are notified. The first waiter probes whether the cluster has SPUBLISH; a
// cluster that does not reply within a second counts as without it, for as long as the client lives.
func (s *Queues) NotifyMode(ctx context.Context) NotifyMode {
	if s.cluster == nil {
		return notifyPublish
	}
	if s.mode.Load() == modeUnknown {
		s.probe(ctx)
	}
	if s.mode.Load() == modeShard {
		return NotifyShard
	}
	return notifyPublish
}

// probe waits for the result of the probe, and starts it if it was not started.
func (s *Queues) probe(ctx context.Context) {
	if s.probing.CompareAndSwap(false, true) {
		started := s.bg.Start(func() {
			defer close(s.probed)
			list, err := s.cluster.Do(s.bg.Context, "COMMAND", "INFO", "SSUBSCRIBE", "SPUBLISH").Slice()
			if err == nil && len(list) == 2 && list[0] != nil && list[1] != nil {
				s.mode.CompareAndSwap(modeUnknown, modeShard)
			}
		})
		if !started { // the client is closed
			close(s.probed)
		}
	}
	if s.bg.Sleep(ctx, time.Second, s.probed) || ctx.Err() == nil {
		s.mode.CompareAndSwap(modeUnknown, modePublish)
	}
}

// wantedAt are the channels to be subscribed, by the address of the master that
// has their slots; empty: any server, for messages that go to all nodes.
func (s *Queues) wantedAt(ctx context.Context, now time.Time) (map[string]map[string]bool, error) {
	out := make(map[string]map[string]bool)
	var failed error
	wanted := s.wanted(now)
	for _, channel := range slices.Sorted(maps.Keys(wanted)) {
		addr := ""
		if wanted[channel] {
			master, err := s.cluster.MasterForKey(ctx, channel)
			if err != nil {
				failed = err
				continue
			}
			addr = master.Options().Addr
		}
		if out[addr] == nil {
			out[addr] = make(map[string]bool)
		}
		out[addr][channel] = true
	}
	return out, failed
}

// open makes a connection for channels of one master; nothing is subscribed yet.
func (s *Queues) open(ctx context.Context, addr string, channels map[string]bool) (*redis.PubSub, error) {
	if addr == "" {
		return s.rdb.Subscribe(ctx), nil
	}
	master, err := s.cluster.MasterForKey(ctx, slices.Min(slices.Collect(maps.Keys(channels))))
	if err != nil {
		return nil, err
	}
	return master.SSubscribe(ctx), nil
}

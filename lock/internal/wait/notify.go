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

// NotifyMode is how waiters of this client are notified: in a cluster by SPUBLISH, until a server says that it has no
// SSUBSCRIBE.
func (s *Queues) NotifyMode() NotifyMode {
	if s.cluster == nil || s.unsharded.Load() {
		return notifyPublish
	}
	return NotifyShard
}

// wantedAt are the channels to be subscribed, by the address of the master that
// has their slots; empty: any server, for messages that go to all nodes.
func (s *Queues) wantedAt(ctx context.Context, now time.Time) (map[string]map[string]bool, error) {
	out := make(map[string]map[string]bool)
	var failed error
	sharded := s.NotifyMode() == NotifyShard
	for _, channel := range slices.Sorted(maps.Keys(s.wanted(now))) {
		addr := ""
		if sharded {
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

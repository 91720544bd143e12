package samplelocks

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func wakesLock() Lock {
	return Lock{
		Name: "wakes",
		Can:  promise.Try | promise.Renew | promise.Wakes,
		Bugs: map[string]string{
			"silent":         "release publishes nothing",
			"publishes-soon": "release publishes before it deletes the key",
			"other-channel":  "release publishes to the channel of its own hold",
			"trusts":         "a waiter sleeps until it gets a message",
			"oversleeps":     "a waiter sleeps for a whole lease if it gets no message",
			"deaf":           "a waiter whose subscription was refused sleeps until its wait ends",
		},
		open: func(b base) client.Locker { return &wakes{plain{b}} },
	}
}

// wakes is the plain lock whose waiters sleep until a message on a channel says that it is free, or its lease ends.
type wakes struct{ plain }

// releaseAndWake takes the lock and the channel as keys.
const releaseAndWake = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
	redis.call('DEL', KEYS[1])
	if ARGV[2] == '1' then redis.call('PUBLISH', KEYS[2], 'free') end
	return 1`

func channel(key string) string { return "{" + key + "}:free" }

func (l *wakes) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	start, err := l.take(ctx, a)
	if errors.Is(err, errBusy) && a.Wait > 0 {
		start, err = l.wait(ctx, a)
	}
	if errors.Is(err, errUnknown) {
		l.undo(a)
	}
	return valid(start.Add(a.Lease), err)
}

func (l *wakes) take(ctx context.Context, a client.Acquire) (start time.Time, err error) {
	start = time.Now()
	acquired, err := l.rdb().SetNX(ctx, a.Key, a.Owner, a.Lease).Result()
	switch {
	case err != nil:
		return start, errors.Join(errUnknown, err)
	case !acquired:
		return start, errBusy
	}
	return start, nil
}

// wait subscribes first, so that it misses no release after its next request.
func (l *wakes) wait(ctx context.Context, a client.Acquire) (start time.Time, err error) {
	subscribed, unsubscribe := context.WithCancel(ctx)
	defer unsubscribe()
	free := l.subscribe(subscribed, channel(a.Key))
	for {
		start, err := l.take(ctx, a)
		if !errors.Is(err, errBusy) {
			return start, err
		}
		left, err := l.rdb().PTTL(ctx, a.Key).Result()
		if err != nil {
			return start, errBusy // that request changes nothing
		}
		select {
		case <-free:
		case <-time.After(l.patience(a, left, free != nil)):
		case <-ctx.Done():
			return start, errBusy
		}
	}
}

// subscribe forwards messages until ctx ends; nil: the subscription was refused. After a failure go-redis subscribes
// again. The goroutine that receives also closes: Close waits for a dial, and virtual time does not pass meanwhile.
func (l *wakes) subscribe(ctx context.Context, name string) <-chan struct{} {
	messages := l.rdb().Subscribe(ctx, name)
	if _, err := messages.Receive(ctx); err != nil {
		_ = messages.Close()
		return nil
	}
	free := make(chan struct{}, 1)
	go func() {
		defer func() { _ = messages.Close() }()
		for ctx.Err() == nil {
			start := time.Now()
			message, err := messages.ReceiveTimeout(ctx, 100*time.Millisecond)
			if _, is := message.(*redis.Message); is && len(free) == 0 {
				free <- struct{}{}
			}
			if err != nil { // no message in time or, sooner, no connection
				time.Sleep(time.Until(start.Add(100 * time.Millisecond)))
			}
		}
	}()
	return free
}

// patience is how long a waiter sleeps without a message, if the lock has a lease of left.
func (l *wakes) patience(a client.Acquire, left time.Duration, subscribed bool) time.Duration {
	switch {
	case l.bug == "trusts", l.bug == "deaf" && !subscribed:
		return time.Hour
	case l.bug == "oversleeps":
		return a.Lease
	case !subscribed:
		return 100 * time.Millisecond
	}
	return max(left, 0) + 5*time.Millisecond
}

func (l *wakes) Release(ctx context.Context, h client.Hold) (int, error) {
	publishes, to := 1, channel(h.Key)
	switch l.bug {
	case "silent":
		publishes = 0
	case "publishes-soon":
		publishes = 0
		_ = l.rdb().Publish(ctx, to, "free").Err()
	case "other-channel":
		to = channel(h.Owner)
	}
	return 0, l.change(ctx, releaseAndWake, []string{h.Key, to}, h.Owner, publishes)
}

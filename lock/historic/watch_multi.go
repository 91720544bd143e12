package historic

// WATCH and MULTI: the value names the owner and the end of the lease, and
// whoever changes it watches it meanwhile, so that nobody is overtaken and a
// release is its own.
//
// The flaw: what is left of the locks before it. The clocks of clients decide
// when a lease is over, so a client that is ahead takes a lock that is held.

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var watchMultiRow = Row{
	Name:   "watch-multi",
	Flaw:   "WATCH and MULTI around owner and timestamp: a client whose clock is ahead takes a lock that is held.",
	Source: "Redis documentation, Transactions: check and set",
	open:   func(c Config) Lock { return &watchMulti{rdb: c.Masters[0], now: c.Now} },
}

type watchMulti struct {
	idle
	rdb redis.UniversalClient
	now func() time.Time
}

// TryAcquire writes the lock while it watches that nobody else does.
func (w *watchMulti) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	value := owner + " " + strconv.FormatInt(w.now().Add(orDefault(lease)).UnixMilli(), 10)
	return w.change(ctx, name, ErrHeld, func(holder string, until int64) bool {
		return holder == "" || until < w.now().UnixMilli()
	}, func(p redis.Pipeliner) { p.Set(ctx, name, value, 0) })
}

// Release deletes the lock while it watches that it stays owner's.
func (w *watchMulti) Release(ctx context.Context, name, owner string) error {
	return w.change(ctx, name, ErrNotOwner, func(holder string, _ int64) bool {
		return holder == owner
	}, func(p redis.Pipeliner) { p.Del(ctx, name) })
}

// change does what do says if may allows it and nobody was faster, and answers no otherwise.
func (w *watchMulti) change(
	ctx context.Context, name string, no error, may func(holder string, until int64) bool, do func(redis.Pipeliner),
) error {
	err := w.rdb.Watch(ctx, func(tx *redis.Tx) error {
		value, err := tx.Get(ctx, name).Result()
		if err != nil && err != redis.Nil {
			return err
		}
		holder, end, _ := strings.Cut(value, " ")
		until, _ := strconv.ParseInt(end, 10, 64)
		if !may(holder, until) {
			return no
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			do(p)
			return nil
		})
		return err
	}, name)
	if errors.Is(err, redis.TxFailedErr) {
		return no
	}
	return err
}

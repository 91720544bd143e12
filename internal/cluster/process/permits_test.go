package process

import "testing"

// TestExpiredPermitsAreNotSampled: permits of a semaphore whose lease has ended stay at the server until a client takes
// them back; nobody holds them.
func TestExpiredPermitsAreNotSampled(t *testing.T) {
	c := up(t, single)
	rdb := dialFrom(t, c, 0, "n1")
	wantReply(t, rdb, "HSET k kind permits total 4 free 2", int64(3))
	wantReply(t, rdb, "ZADD {k}:permits 1000 a.1 99999999999999 b.1", int64(2))
	if got := look(t, c, "n1", "k").Keys["k"]; got.Permits != 1 || got.Limit != 4 {
		t.Errorf("with one of two leases over: %+v", got)
	}
	wantReply(t, rdb, "ZADD {k}:permits 2000 b.1", int64(0))
	if got, held := look(t, c, "n1", "k").Keys["k"]; held {
		t.Errorf("with all leases over: %+v", got)
	}
}

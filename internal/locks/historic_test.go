package locks

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/historic"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/topology"
)

// Every lock of package historic is a row here; its Doc is its flaw.
func TestHistoricRows(t *testing.T) {
	for _, row := range historic.Catalog() {
		got, err := Lookup(row.Name)
		if err != nil || got.Doc != row.Flaw {
			t.Errorf("%s: %v; Doc %q", row.Name, err, got.Doc)
		}
		if got.Runs(topology.Quorum) != row.Quorum || got.Runs(topology.Single) == row.Quorum {
			t.Errorf("%s runs on %v", row.Name, got.Topologies)
		}
	}
}

func TestHistoricErrors(t *testing.T) {
	for _, tt := range []struct {
		err      error
		code     string
		definite bool
	}{
		{historic.ErrHeld, "held", true},
		{historic.ErrNotOwner, "not-owner", true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "error", true},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, "error", false},
		{io.EOF, "error", false},
		{context.DeadlineExceeded, "no-reply", false},
	} {
		if code, definite := historicCode(tt.err), historicDefinite(tt.err); code != tt.code || definite != tt.definite {
			t.Errorf("%v: %q, definite %v; want %q, %v", tt.err, code, definite, tt.code, tt.definite)
		}
	}
}

// The validity of a historic lock is its lease; without one it promises nothing.
func TestHistoricValidity(t *testing.T) {
	ctx := context.Background()
	setup := client.Setup{Endpoints: topology.Endpoints{Kind: topology.Single, Addrs: []string{locktest.StartServer(t).Addr}}}
	for name, promised := range map[string]bool{"setnx": false, "set-nx-px": true, "redisson": true} {
		l, err := historicLock(t, name).Open(setup, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wait := range []time.Duration{0, time.Minute} {
			before := time.Now()
			g, err := l.Acquire(ctx, client.Acquire{Key: name, Owner: "a", Lease: time.Minute, Wait: wait})
			if err != nil || g.Deadline.IsZero() == promised {
				t.Errorf("%s: %+v, %v", name, g, err)
			}
			if late := g.Deadline.Sub(before.Add(time.Minute)); promised && (late < 0 || late > 10*time.Second) {
				t.Errorf("%s: valid until %v after the end of a lease that starts with the request", name, late)
			}
			if _, err := l.Release(ctx, client.Hold{Key: name, Owner: "a"}); err != nil {
				t.Errorf("%s: release: %v", name, err)
			}
		}
		if _, err := l.Renew(ctx, client.Hold{Key: name, Owner: "a"}, 0); !errors.Is(err, client.ErrNotHeld) {
			t.Errorf("%s: renew: %v", name, err)
		}
		if err := l.Close(ctx); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

// The option clock_skew skews each client's clock by an amount drawn from its seed; a bad value is rejected.
func TestHistoricClockSkew(t *testing.T) {
	ctx := context.Background()
	server := locktest.StartServer(t)
	open := func(seed uint64, skew string) (client.Locker, error) {
		return historicLock(t, "setnx-getset").Open(client.Setup{
			Seed: seed, Options: map[string]string{native.OptionSkew: skew},
			Endpoints: topology.Endpoints{Kind: topology.Single, Addrs: []string{server.Addr}},
		}, nil)
	}
	var granted []bool
	for _, skew := range []string{"1h", ""} {
		taken := false
		for seed := range uint64(8) {
			l, err := open(seed, skew)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close(ctx)
			_, err = l.Acquire(ctx, client.Acquire{Key: "k" + skew, Owner: "o", Lease: time.Minute})
			taken = taken || seed > 0 && err == nil // from its holder
		}
		granted = append(granted, taken)
	}
	if diff := cmp.Diff([]bool{true, false}, granted); diff != "" {
		t.Errorf("taken from its holder, with clocks apart and without (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"x", "0s", "-1s"} {
		if l, err := open(1, bad); err == nil {
			t.Errorf("skew %q was accepted", bad)
			_ = l.Close(ctx)
		}
	}
}

// TestHistoricOptions: a lock of the articles has no option but clock_skew, and does not ignore another.
func TestHistoricOptions(t *testing.T) {
	for _, row := range historicSpecs() {
		options := map[string]string{"lease": "1s"}
		err := row.CheckOptions(options)
		_, opened := row.Open(client.Setup{Options: options}, nil)
		for _, err := range []error{err, opened} {
			if err == nil || !strings.Contains(err.Error(), `unknown option "lease"; this lock has clock_skew`) {
				t.Errorf("%s: %v", row.Name, err)
			}
		}
	}
}

// TestHistoricFirstMaster: the number of a master that does not exist is refused.
func TestHistoricFirstMaster(t *testing.T) {
	addrs := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
	for text, want := range map[string]string{
		"1": "", "3": "", "4": "there are only 3 masters", "9": "there are only 3 masters", "0": "from 1", "x": "from 1",
	} {
		l, err := historicLock(t, "redlock-fixed-retry").Open(client.Setup{
			Endpoints: topology.Endpoints{Kind: topology.Quorum, Addrs: addrs}, Options: map[string]string{firstMaster: text},
		}, nil)
		if err == nil {
			_ = l.Close(t.Context())
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("first master %s of 3: error %v, want %q", text, err, want)
		}
	}
}

func historicLock(t *testing.T, name string) client.Spec {
	t.Helper()
	row, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

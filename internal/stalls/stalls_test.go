package stalls

import (
	"context"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// TestHeartbeatDoesNotWaitForClients: a look at the clients that never ends does not delay the heartbeat.
func TestHeartbeatDoesNotWaitForClients(t *testing.T) {
	const ofClients = 3 // readings of the clock without a heartbeat
	ctx, cancel := context.WithCancel(t.Context())
	readings, ended, began := make(chan struct{}), make(chan Lateness, 1), time.Now()
	go func() {
		ended <- Watch{
			Clock: &Clock{History: func() time.Duration {
				select {
				case readings <- struct{}{}:
				case <-ctx.Done():
				}
				return time.Since(began)
			}},
			Processes: func() []Process {
				<-ctx.Done()
				return nil
			},
			Note: func(string, *history.FaultValue) {}, // the machine may be busy
		}.Run(ctx)
	}()
	for n := range ofClients + 3 {
		select {
		case <-readings:
		case <-time.After(time.Minute):
			t.Fatalf("the clock was read %d times", n)
		}
	}
	cancel()
	<-ended
}

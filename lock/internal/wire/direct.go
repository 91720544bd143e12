package wire

import (
	"context"
	"errors"
	"time"
)

// direct is the context of a call that its caller sends itself. It ends after directTimeout. It has no deadline that
// go-redis could see, so only the waits for a connection end with it: for a turn in the pool, or for a dial that hangs.
type direct struct {
	context.Context // for its values
	alarm           *alarm
}

// errNoConnection is the error of a [direct] that has ended: the call was not sent.
var errNoConnection = errors.New("no connection in time")

// Deadline implements context.Context.
func (direct) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (d direct) Done() <-chan struct{} { return d.alarm.rung }

// Err implements context.Context.
func (d direct) Err() error {
	select {
	case <-d.alarm.rung:
		return errNoConnection
	default:
		return nil
	}
}

// alarm closes a channel after directTimeout. It is used again if it was stopped in time: one caller sends at a time.
type alarm struct {
	rung  chan struct{}
	timer *time.Timer
}

// setAlarm is an alarm that was just set. The caller has entered p as the one that sends.
func (p *Pipe) setAlarm() *alarm {
	if a := p.alarm; a != nil {
		a.timer.Reset(directTimeout)
		return a
	}
	a := &alarm{rung: make(chan struct{})}
	a.timer = time.AfterFunc(directTimeout, func() { close(a.rung) })
	p.alarm = a
	return a
}

// stopAlarm undoes setAlarm. An alarm that has rung is not used again.
func (p *Pipe) stopAlarm() {
	if !p.alarm.timer.Stop() {
		p.alarm = nil
	}
}

package lock

import "time"

// doubt is from when on the lock may have been granted to a failed acquire and have expired again, so that a release
// that finds nothing proves nothing.
type doubt struct {
	always bool
	until  time.Time // before that, what a request of unknown outcome was granted cannot have expired; zero: there is none
	queued time.Time // the same for what a release may have handed over to the waiter; zero: it was not queued
}

// note notes a request for c that was sent at an instant, and its error.
func (d *doubt) note(c *claim, sent time.Time, err error) {
	handedOver := time.Duration(c.waiterTTL) * time.Millisecond
	lasts := time.Duration(c.lease) * time.Millisecond
	if c.waiterTTL > 0 {
		lasts = min(lasts, handedOver)
	}
	end := sent.Add(validity(lasts))
	switch {
	case err != nil:
		if outcomeOf(err).MayHaveHappened() && d.until.IsZero() && c.lease > 0 {
			d.until = end
		}
	case c.waiterTTL > 0:
		d.always = d.always || d.expired(d.queued, time.Now())
		d.queued = sent.Add(validity(handedOver))
	}
}

// outlived reports whether something that was granted may have expired by now.
func (d *doubt) outlived(now time.Time) bool {
	return d.always || d.expired(d.until, now) || d.expired(d.queued, now)
}

func (*doubt) expired(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

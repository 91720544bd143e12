package lock

import "time"

// maybeGranted has the times after which a grant to a failed acquire, if there was one, may have expired: from then on,
// a release that finds no hold does not prove that there was no grant.
type maybeGranted struct {
	always bool      // a grant may have expired already
	until  time.Time // end of a grant to the first request of unknown outcome; zero: there is no such request
	queued time.Time // end of a hold that a release may have handed over to the waiter; zero: it was not queued
}

// note notes a request for c that was sent at an instant, and its error.
func (d *maybeGranted) note(c *claim, sent time.Time, err error) {
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

// mayHaveExpired reports whether a grant may have expired by now.
func (d *maybeGranted) mayHaveExpired(now time.Time) bool {
	return d.always || d.expired(d.until, now) || d.expired(d.queued, now)
}

func (*maybeGranted) expired(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
